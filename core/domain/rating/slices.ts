/** Lets other work of the process run between two slices of a long computation. */
export type Breathe = () => Promise<void>

/** A slice takes a millisecond or two. */
const SLICE = 1000

/** Calls `take` with each item, a slice at a time. */
export async function inSlices<T>(items: readonly T[], breathe: Breathe, take: (item: T) => void): Promise<void> {
  for (let at = 0; at < items.length; at += SLICE) {
    for (const item of items.slice(at, at + SLICE)) take(item)
    await breathe()
  }
}

/** Sorts like `Array.sort`, but merges sorted slices, so that a million items do not stop the process. */
export async function sortInSlices<T>(items: readonly T[], breathe: Breathe, compare: (a: T, b: T) => number) {
  let runs: T[][] = []
  for (let at = 0; at < items.length; at += SLICE) {
    runs.push(items.slice(at, at + SLICE).sort(compare))
    await breathe()
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let at = 0; at < runs.length; at += 2)
      merged.push(await merge(runs[at] ?? [], runs[at + 1] ?? [], breathe, compare))
    runs = merged
  }
  return runs[0] ?? []
}

async function merge<T>(left: readonly T[], right: readonly T[], breathe: Breathe, compare: (a: T, b: T) => number) {
  const merged: T[] = []
  let [l, r] = [0, 0]
  while (l < left.length || r < right.length) {
    const [a, b] = [left[l], right[r]]
    if (b === undefined || (a !== undefined && compare(a, b) <= 0)) {
      merged.push(a as T)
      l++
    } else {
      merged.push(b)
      r++
    }
    if (merged.length % SLICE === 0) await breathe()
  }
  return merged
}
