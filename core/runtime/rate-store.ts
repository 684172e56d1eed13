/** A limit of one key: a bucket that refills, or a window that begins with its first request. */
export interface RateShape {
  /** The most requests at once, or in a window. */
  readonly burst: number
  /** How fast a bucket refills; 0 of a window. */
  readonly per_second: number
  /** The length of a window; null: it is a bucket. */
  readonly window_ms: number | null
}

export interface RateAsk extends RateShape {
  readonly name: string
  /** How many requests may be granted. */
  readonly wanted: number
  /** Grants that were not used, or the whole bucket. */
  readonly back: number
}

export interface RateAnswer {
  readonly granted: number
  /** What is left then, in requests with their fraction. */
  readonly left: number
  /** When everything may be taken again. */
  readonly full_in_ms: number
}

/** Counts requests for all machines of an installation. */
export interface RateStore {
  /** Answers asks in their order. Each name comes once. */
  draw(asks: readonly RateAsk[]): Promise<readonly RateAnswer[]>
  /** Forgets what is full. */
  prune(): Promise<void>
  close(): Promise<void>
}

/** Counts are kept as whole numbers. A refill of a slow bucket is a small part of a request. */
export const MILLION = 1_000_000

/** When a bucket or a window is full again. `began_ms` is the beginning of the window. */
export function fullInMs(shape: RateShape, left: number, now_ms: number, began_ms: number): number {
  if (shape.window_ms !== null) return Math.max(0, began_ms + shape.window_ms - now_ms)
  return Math.ceil(((shape.burst - left) / shape.per_second) * 1000)
}
