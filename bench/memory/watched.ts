import { readFileSync } from 'node:fs'

const KIB_IN_MIB = 1024

/** MiB in the memory of the machine, with our share of the pages that several processes have, and ours alone. */
export interface Memory {
  readonly rss: number
  readonly pss: number
  readonly own: number
}

export function memoryOf(pid: number): Memory {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const of = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(rollup)?.[1] ?? 0) / KIB_IN_MIB
  return { rss: of('Rss'), pss: of('Pss'), own: of('Private_Clean') + of('Private_Dirty') }
}

/** Returns the slope of the least-squares line through values at equal distances, for each distance. */
export function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const over = values.reduce((sum, value, at) => sum + (at - middle) * (value - mean), 0)
  const under = values.reduce((sum, _value, at) => sum + (at - middle) ** 2, 0)
  return under === 0 ? 0 : over / under
}
