import type { CallingWindow } from './api-types.ts'

// The hours in which calls may begin, as lines of text: `monday friday 08:00-18:30`.

const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const

export const hoursText = (windows: readonly CallingWindow[] | null): string =>
  (windows ?? []).map(({ days, from, to }) => `${days.join(' ')} ${from}-${to}`).join('\n')

/** Reads lines of hours; null for none, which means always. What is no day or time goes to the API, which says so. */
export function readHours(text: string): readonly CallingWindow[] | null {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  return lines.length === 0 ? null : lines.map(windowOf)
}

function windowOf(line: string): CallingWindow {
  const words = line
    .trim()
    .toLowerCase()
    .split(/[\s,]+/)
  const [from = '', to = ''] = (words.pop() ?? '').split('-')
  return { days: words.flatMap(daysOf), from, to }
}

/** `mon`, `monday` and `monday-friday`. */
function daysOf(word: string): CallingWindow['days'][number][] {
  const [first = '', last = first] = word.split('-')
  const at = (name: string): number => (name.length < 2 ? -1 : DAYS.findIndex(day => day.startsWith(name)))
  const [begin, end] = [at(first), at(last)]
  if (begin === -1 || end === -1) return [word as CallingWindow['days'][number]]
  const count = ((end - begin + DAYS.length) % DAYS.length) + 1
  return Array.from({ length: count }, (_, day) => DAYS[(begin + day) % DAYS.length] ?? 'monday')
}
