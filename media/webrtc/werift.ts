let loading: Promise<typeof import('werift')> | null = null

/** It takes a third of a second to load. */
export function loadWerift(): Promise<typeof import('werift')> {
  loading ??= import('werift')
  return loading
}

/** Its first file. */
export const weriftModule = (): string => import.meta.resolve('werift')
