import { noChange } from 'lit-html'
import { type AttributePart, Directive, directive } from 'lit-html/directive.js'

/** Sets styles by property. Style attributes, which lit's own styleMap begins with, are refused by the page's policy. */
class Styles extends Directive {
  override render(_styles: Readonly<Record<string, string>>): typeof noChange {
    return noChange
  }

  override update({ element }: AttributePart, [styles]: [Readonly<Record<string, string>>]): typeof noChange {
    if (element instanceof HTMLElement)
      for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value)
    return noChange
  }
}

/** For an attribute `style`: `style=${styles({ top: '4px' })}`. */
export const styles = directive(Styles)
