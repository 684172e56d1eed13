/** A row with the revision that a write of it builds on. */
export interface Revised {
  readonly id: string
  readonly revision: number
}

/** What this page's own writes made of a row: of `first`, step by step, `newest`. */
interface Own {
  readonly first: number
  readonly newest: number
}

interface Written<T> {
  readonly answer: T
  /** The row's revision in the answer; null when the answer has none. */
  readonly revision: number | null
}

const MOST_ROWS = 200
const rows = new Map<string, Promise<Own>>()

/**
 * Writes a row after this page's earlier writes of it. A write builds on the revision that the person saw. When only
 * this page's writes changed the row since, it builds on the last of them: two quick clicks are two writes. The API
 * still refuses a write when somebody else changed the row.
 */
export async function writeInTurn<T>(
  { id, revision }: Revised,
  write: (revision: number) => Promise<Written<T>>,
): Promise<T> {
  const fresh: Own = { first: revision, newest: revision }
  const before = rows.get(id) ?? Promise.resolve(fresh)
  const written = before.then(own => {
    const base = own.first <= revision && revision <= own.newest ? own : fresh
    return write(base.newest).then(
      done => ({ own: { first: base.first, newest: done.revision ?? base.newest }, done }),
      error => ({ own: base, error }),
    )
  })
  // The rows that were written last stay last.
  rows.delete(id)
  rows.set(
    id,
    written.then(({ own }) => own),
  )
  const [oldest] = rows.keys()
  if (rows.size > MOST_ROWS && oldest !== undefined) rows.delete(oldest)
  const ended = await written
  if ('error' in ended) throw ended.error
  return ended.done.answer
}

/** Reads an ETag of the API: one quoted number. Null for any other. */
export function revisionOf(etag: string | null): number | null {
  const digits = /^"(\d+)"$/.exec(etag ?? '')?.[1]
  return digits === undefined ? null : Number(digits)
}
