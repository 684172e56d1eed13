import { accessSync, constants, readFileSync } from 'node:fs'
import { StartRefused } from '../core/runtime/start-refused.ts'

/** What the system says of a file that a person named. Other errors of files are bugs. */
const FILE_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  EROFS: 'the file system is read-only',
  EBUSY: 'something uses it, or it is mounted',
  ENOSPC: 'no space is left',
  EDQUOT: 'no space is left',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'its links form a circle',
}

/** Returns why the system refuses a file that a person named; null for another error. */
export const whyOfFile = (error: unknown): string | null =>
  error instanceof Error && 'code' in error ? (FILE_ERRORS[String(error.code)] ?? null) : null

/** Reads a file that a person named; `-` is standard input. @throws StartRefused */
export function readText(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    const why = whyOfFile(error)
    throw why === null ? error : new StartRefused(`${file} cannot be read: ${why}`)
  }
}

/** The present moment, as a part of the names of what is kept aside. */
export const stamp = (): string => new Date().toISOString().replaceAll(/[:.]/g, '-')

/** Reports whether this user may write a file, or make one in a folder. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}
