import { type BoundedMap, boundedMap } from '../../domain/bounded-map.ts'
import type { Row } from '../procedures/query.ts'
import { type Read, type ReadRows, tablesNamed } from './known-reads.ts'

/** Tables with a trigger that tells of changes (migration 0053). */
export const KEPT_TABLES: ReadonlySet<string> = new Set([
  ...['organization', 'project', 'project_ceiling', 'subaccount', 'trunk', 'trunk_setting', 'subtrunk', 'delegation'],
  ...['number', 'policy_attachment', 'outbound_policy', 'policy_rule', 'price_book', 'webhook_endpoint', 'containment'],
])
const MOST_ROWS_OF_A_READ = 20
/** Of each text, of which there are some 20. */
const MOST_READS = 2000

/**
 * Reads of the configuration that hold until it changes. A turn reads its version after it has the lock of writers, so
 * a change acts on the next call, as everywhere (decision 1054).
 */
export class KeptReads {
  #version = ''
  readonly #reads = new Map<string, BoundedMap<string, readonly Row[]>>()

  /** Reports whether what was kept is of this version. Otherwise it is forgotten. */
  isOf(version: string): boolean {
    if (version === this.#version) return true
    this.#version = version
    this.#reads.clear()
    return false
  }

  find({ sql, values }: Read): readonly Row[] | undefined {
    return this.#reads.get(sql)?.get(JSON.stringify(values))
  }

  keep({ sql, values, rows }: ReadRows): void {
    if (rows.length > MOST_ROWS_OF_A_READ) return
    let reads = this.#reads.get(sql)
    if (!reads) {
      const tables = tablesNamed(sql)
      if (tables.size === 0 || ![...tables].every(table => KEPT_TABLES.has(table))) return
      reads = boundedMap(MOST_READS)
      this.#reads.set(sql, reads)
    }
    reads.set(JSON.stringify(values), rows)
  }
}
