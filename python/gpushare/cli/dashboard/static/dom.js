// Makes elements. Texts of jobs enter the page here alone, and only as text.

/** Returns a new element with attributes and children; a child that is no node becomes text. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** Changes a text only where it differs, so that a selection on the page stays. */
export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Makes the parent's children these, in this order; those that are in place are not touched. */
export function setChildren(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] ?? null);
  });
}

/** Returns a colour of the style sheet. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Makes a canvas as sharp as the screen, and returns what draws on it in CSS pixels. */
export function prepare(canvas, height) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const drawing = canvas.getContext("2d");
  drawing.scale(scale, scale);
  drawing.font = "12px system-ui, sans-serif";
  return { drawing, width };
}
