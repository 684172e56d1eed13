import { constants } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants

/**
 * Opens a file in a folder that another user writes to. Refuses a link, which could lead where that user has no access,
 * and a pipe, which would block. @throws ELOOP for a link
 */
export async function openPlainFile(path: string): Promise<FileHandle> {
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new Error(`${path} is not a file`)
}

/** Creates a file in such a folder and replaces whatever has its name. */
export async function newPlainFile(path: string): Promise<FileHandle> {
  await rm(path, { force: true })
  return open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
}
