import MiniSearch from 'minisearch'

/** A part of a page that a search may find. */
export interface SearchEntry {
  readonly address: string
  /** Of the page. */
  readonly title: string
  readonly heading: string
  readonly text: string
}

/** What a search shows of an entry: the beginning of its text, at most EXCERPT characters. */
export interface Found extends Omit<SearchEntry, 'text'> {
  readonly excerpt: string
}

const MOST_FOUND = 30
const EXCERPT = 200

/** Returns the search over entries: those that hold every word of a question, or words that begin so; best first. */
export function searchOver(entries: Iterable<SearchEntry>): (question: string) => Found[] {
  const index = new MiniSearch<SearchEntry & { readonly excerpt: string }>({
    idField: 'address',
    fields: ['title', 'heading', 'text'],
    storeFields: ['address', 'title', 'heading', 'excerpt'],
  })
  for (const entry of entries) {
    // Two headings of one page may have one anchor: the first one is where the link leads.
    if (index.has(entry.address)) continue
    index.add({ ...entry, excerpt: entry.text.replace(/\s+/g, ' ').trim().slice(0, EXCERPT) })
  }
  return question =>
    index
      .search(question, { prefix: true, combineWith: 'AND', boost: { title: 3, heading: 5 } })
      .slice(0, MOST_FOUND)
      .map(({ address, title, heading, excerpt }) => ({ address, title, heading, excerpt }))
}
