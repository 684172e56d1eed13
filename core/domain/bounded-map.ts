import { LRUCache } from 'lru-cache'

export type BoundedMap<Key extends {}, Value extends {}> = LRUCache<Key, Value>

/**
 * Returns a map of at most `entries` entries, which forgets the one that was not used for longest. Its memory grows
 * with what it holds: given `max`, the library would reserve half a megabyte for 20,000 entries, even if none ever
 * comes.
 */
export const boundedMap = <Key extends {}, Value extends {}>(entries: number): BoundedMap<Key, Value> =>
  new LRUCache<Key, Value>({ maxSize: entries, sizeCalculation: () => 1 })

/** Returns a map whose values have at most `bytes` together. A value that is larger than that is not kept. */
export const boundedBytes = <Key extends {}, Value extends {}>(
  bytes: number,
  bytesOf: (value: Value) => number,
): BoundedMap<Key, Value> =>
  new LRUCache<Key, Value>({ maxSize: bytes, sizeCalculation: value => Math.max(1, bytesOf(value)) })
