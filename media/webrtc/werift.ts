import { createRequire } from 'node:module'

let loading: Promise<typeof import('werift')> | null = null

/** Loads werift, which takes a third of a second. */
export function loadWerift(): Promise<typeof import('werift')> {
  loading ??= import('werift')
  return loading
}

/** Returns the path of werift's main file. */
export const weriftModule = (): string => createRequire(import.meta.url).resolve('werift')
