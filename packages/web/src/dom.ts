// Makes elements. Text from a sandbox is only ever set as text, never as HTML.

type Child = Node | string
type Props<Tag extends keyof HTMLElementTagNameMap> = Partial<
  Omit<HTMLElementTagNameMap[Tag], 'style' | 'dataset'>
>

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  props: Props<Tag> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const made = Object.assign(document.createElement(tag), props)
  made.append(...children)
  return made
}

export function button(text: string, onclick: () => unknown, title = ''): HTMLButtonElement {
  return element('button', { type: 'button', textContent: text, title, onclick: () => void onclick() })
}
