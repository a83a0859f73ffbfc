// Keeps the page fresh: takes sections as the server sends them, and changes only what differs, so that focus,
// selection and opened details stay where they are. Without this file the page is whole and reloads itself.
"use strict";

const RETRY_MS = 3000;
const QUIET_MS = 8000; // the server says something every second or two
const when = document.getElementById("when");
let heardAt = 0;

function connect() {
  const source = new EventSource("/api/v1/events");
  source.addEventListener("sections", (event) => {
    const news = JSON.parse(event.data);
    if (news.version !== document.body.dataset.version) {
      location.reload(); // another version has other files
      return;
    }
    for (const [id, html] of Object.entries(news.sections)) {
      update(id, html);
    }
    heardAt = Date.now();
    say(`live, as of ${news.when}`, false);
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(connect, RETRY_MS);
    }
  });
}

function update(id, html) {
  const section = document.getElementById(id);
  if (section === null) {
    return;
  }
  const parsed = new DOMParser().parseFromString(`<body>${html}</body>`, "text/html");
  morphChildren(section, parsed.body);
}

function morphChildren(old, fresh) {
  const wanted = [...fresh.childNodes];
  const present = [...old.childNodes];
  wanted.forEach((node, at) => {
    if (at >= present.length) {
      old.append(document.importNode(node, true));
    } else {
      morph(present[at], node);
    }
  });
  present.slice(wanted.length).forEach((node) => node.remove());
}

function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(document.importNode(fresh, true));
  } else if (old.nodeType === Node.ELEMENT_NODE) {
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) {
        old.setAttribute(name, value);
      }
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && name !== "open") {
        old.removeAttribute(name);
      }
    }
    morphChildren(old, fresh);
  } else if (old.nodeValue !== fresh.nodeValue) {
    old.nodeValue = fresh.nodeValue;
  }
}

function say(text, isLost) {
  if (when.textContent !== text) {
    when.textContent = text;
  }
  when.parentElement.classList.toggle("is-lost", isLost);
}

setInterval(() => {
  if (heardAt !== 0 && Date.now() - heardAt > QUIET_MS) {
    say(`no news for ${Math.round((Date.now() - heardAt) / 1000)} s: gpufeed or the network is down`, true);
  }
}, 1000);
connect();
