let loading: Promise<typeof import('werift')> | null = null

/** Loads werift, which takes a third of a second. */
export function loadWerift(): Promise<typeof import('werift')> {
  loading ??= import('werift')
  return loading
}

/** Returns the URL of werift's main file. */
export const weriftModule = (): string => import.meta.resolve('werift')
