if (!window.subspacesKeys) {
  window.subspacesKeys = true;
  const find = (root, selector) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.matches(selector)) return element;
      const inside = element.shadowRoot && find(element.shadowRoot, selector);
      if (inside) return inside;
    }
  };
  document.addEventListener("keydown", event => {
    const target = event.composedPath()[0];
    const typing = target.matches && target.matches("input:not([type=checkbox]), textarea, select");
    if (typing || event.repeat || event.ctrlKey || event.metaKey || event.altKey || !"123".includes(event.key)) return;
    const host = find(document, `.answer-${event.key}`);
    const button = host && host.shadowRoot && host.shadowRoot.querySelector("button");
    if (button && button.offsetParent && !button.disabled) button.click();
  });
}
