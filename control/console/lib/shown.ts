import { type ComponentChildren, Fragment, options, type VNode } from 'preact'
import { visible } from '../../../core/domain/text/visible.ts'

/** Shows what others wrote as data: characters that would turn or hide the text around them become visible. */
function shown(children: ComponentChildren): ComponentChildren {
  if (typeof children === 'string') return visible(children)
  return Array.isArray(children) ? children.map(shown) : children
}

/** Makes every page show texts so. What a person edits stays as it is: it is a value, not a text of the page. */
export function showTexts(): void {
  const { vnode: before } = options
  options.vnode = (node: VNode<{ children?: ComponentChildren }>) => {
    const { type, props } = node
    if ((typeof type === 'string' && type !== 'textarea') || type === Fragment) {
      const { children } = props
      if (typeof children === 'string' || Array.isArray(children)) props.children = shown(children)
    }
    before?.(node)
  }
}
