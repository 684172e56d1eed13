import { computed, signal } from '@preact/signals'

const BASE = '/console'

const here = (): string => {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : '/'
  return (path === '' ? '/' : path) + location.search
}

/** What a page gets: the parameters of its path. */
export interface PageProps {
  readonly params: Readonly<Record<string, string>>
}

const current = signal(here())

/** The page's path below /console, without the query. */
export const path = computed(() => current.value.split('?')[0] ?? '/')
export const query = computed(() => new URLSearchParams(current.value.split('?')[1] ?? ''))

export const hrefOf = (to: string): string => `${BASE}${to}`

export function go(to: string, { replace = false } = {}): void {
  if (to === current.value) return
  const samePage = to.split('?')[0] === path.value
  history[replace ? 'replaceState' : 'pushState'](null, '', hrefOf(to))
  current.value = to
  if (!samePage) scrollTo(0, 0)
}

/** Changes query parameters in place; an empty value removes one. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const next = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  go(text === '' ? path.value : `${path.value}?${text}`, { replace: true })
}

addEventListener('popstate', () => {
  current.value = here()
})

// Links have real addresses. A click changes the page in place; a new tab loads it.
addEventListener('click', event => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
  const link = (event.target as Element | null)?.closest?.('a')
  if (link?.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return
  if (!link.pathname.startsWith(`${BASE}/`)) return
  event.preventDefault()
  if (link.hash !== '' && link.pathname === location.pathname) {
    document.getElementById(link.hash.slice(1))?.focus()
    return
  }
  go(link.pathname.slice(BASE.length) + link.search)
})

/** Returns the parts of `at` that `pattern` (such as /trunks/:id) names; null when it does not match. */
export function match(pattern: string, at: string): Record<string, string> | null {
  const wanted = pattern.split('/')
  const given = at.split('/')
  if (wanted.length !== given.length) return null
  const found: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? ''
    if (part.startsWith(':')) found[part.slice(1)] = decodeURIComponent(value)
    else if (part !== value) return null
  }
  return found
}
