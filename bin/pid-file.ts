import { renameSync, writeFileSync } from 'node:fs'

/** Writes a pid file atomically: a concurrent reader finds either the old pid or the new one. */
export function writePid(file: string, pid: number | undefined): void {
  writeFileSync(`${file}.new`, `${pid}\n`)
  renameSync(`${file}.new`, file)
}
