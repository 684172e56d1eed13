import { parseAddress, parseNetwork } from './address.ts'

/** An address range and its owner: a trunk or a carrier. */
export interface SourceEntry<Owner> {
  readonly cidr: string
  readonly selector_precedence: number
  readonly owner: Owner
}

/** A binary trie over address bits in flat arrays. A lookup visits at most 32 nodes (IPv4) or 128 (IPv6). */
export interface SourceIndex<Owner> {
  readonly v4: Trie
  readonly v6: Trie
  /** The entries that end at each node, indexed by list number. */
  readonly lists: readonly (readonly SourceEntry<Owner>[])[]
  /** CIDRs that do not parse. They match nothing. */
  readonly invalid: readonly string[]
}

interface Trie {
  /** Children of node n are at 2n and 2n+1. 0 means no child, because no edge leads back to the root. */
  children: Int32Array
  /** List number of node n plus 1; 0 means no list. */
  lists: Int32Array
  size: number
}

/** Compiles sources into a new index that shares nothing with an earlier one. Pass only enabled sources. */
export function compileSources<Owner>(entries: Iterable<SourceEntry<Owner>>): SourceIndex<Owner> {
  const v4 = emptyTrie()
  const v6 = emptyTrie()
  const lists: SourceEntry<Owner>[][] = []
  const invalid: string[] = []
  for (const entry of entries) {
    const network = parseNetwork(entry.cidr)
    if (!network) {
      invalid.push(entry.cidr)
      continue
    }
    const trie = network.words.length === 1 ? v4 : v6
    const node = insert(trie, network.words, network.prefix_length)
    const list = trie.lists[node] ?? 0
    if (list === 0) trie.lists[node] = lists.push([entry])
    else lists[list - 1]?.push(entry)
  }
  for (const list of lists) list.sort((a, b) => a.selector_precedence - b.selector_precedence)
  return { v4, v6, lists, invalid }
}

/** Returns the entries of the longest prefix that contains the address, lowest selector_precedence first. */
export function matchSources<Owner>(index: SourceIndex<Owner>, address: string): readonly SourceEntry<Owner>[] {
  const parsed = parseAddress(address)
  if (!parsed) return []
  const trie = parsed.words.length === 1 ? index.v4 : index.v6
  let node = 0
  let found = trie.lists[0] ?? 0
  for (const word of parsed.words) {
    for (let bit = 31; bit >= 0; bit--) {
      node = trie.children[2 * node + ((word >>> bit) & 1)] ?? 0
      if (node === 0) return index.lists[found - 1] ?? []
      const list = trie.lists[node] ?? 0
      if (list !== 0) found = list
    }
  }
  return index.lists[found - 1] ?? []
}

/** Reports whether any entry contains the address. */
export const holdsAddress = <Owner>(index: SourceIndex<Owner>, address: string): boolean =>
  matchSources(index, address).length > 0

// Starts small, because every trunk also has its own index.
const emptyTrie = (): Trie => ({ children: new Int32Array(4), lists: new Int32Array(2), size: 1 })

function insert(trie: Trie, words: readonly number[], length: number): number {
  let node = 0
  for (let depth = 0; depth < length; depth++) {
    const bit = ((words[depth >>> 5] ?? 0) >>> (31 - (depth & 31))) & 1
    let next = trie.children[2 * node + bit] ?? 0
    if (next === 0) {
      next = trie.size++
      if (trie.size > trie.lists.length) grow(trie)
      trie.children[2 * node + bit] = next
    }
    node = next
  }
  return node
}

function grow(trie: Trie): void {
  const children = new Int32Array(trie.children.length * 2)
  children.set(trie.children)
  trie.children = children
  const lists = new Int32Array(trie.lists.length * 2)
  lists.set(trie.lists)
  trie.lists = lists
}
