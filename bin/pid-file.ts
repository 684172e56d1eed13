import { renameSync, writeFileSync } from 'node:fs'

/** Writes a process's id where others look it up: whoever reads meanwhile finds the old one or the new one, whole. */
export function writePid(file: string, pid: number | undefined): void {
  writeFileSync(`${file}.new`, `${pid}\n`)
  renameSync(`${file}.new`, file)
}
