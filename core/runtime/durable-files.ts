import {
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'

// Files that a power cut leaves whole or as they were: the bytes are on the disk before the name, and the name before
// the next step (rename(2), fsync(2)).

/** Returns when the bytes of a file, or the names in a folder, are on the disk. */
export function syncToDisk(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Gives a finished file its name, in the place of what had it. */
export function renameDurably(from: string, to: string): void {
  syncToDisk(from)
  renameSync(from, to)
  syncToDisk(dirname(to))
}

export function writeDurably(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameDurably(`${file}.new`, file)
}

/** Copies a file. One that it replaces gives the copy its owner. */
export function copyDurably(from: string, to: string): void {
  const part = `${to}.new`
  rmSync(part, { force: true })
  copyFileSync(from, part, constants.COPYFILE_FICLONE)
  const before = statSync(to, { throwIfNoEntry: false })
  if (before) chownSync(part, before.uid, before.gid)
  renameDurably(part, to)
}

/** Removes a file, if it is there. */
export function removeDurably(file: string): void {
  rmSync(file, { force: true })
  syncToDisk(dirname(file))
}
