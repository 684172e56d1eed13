import { type FileHandle, open } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { Readable } from 'node:stream'
import { openSealed } from '../../core/runtime/sealed-file.ts'
import { SEALED } from '../../core/state/recording-storage.ts'

/** The content of a recording's file, encrypted or not. */
export interface RecordingFile {
  readonly bytes: number
  /** From `first` to `last`, both included; the file closes with the stream, also when the client goes away. */
  stream(first: number, last: number): Readable
  close(): Promise<void>
}

/**
 * Where a recording's file is; its name comes from our own rows, and even so it must not lead out of the data folder.
 */
export function pathBelow(data_dir: string, file: string): string {
  const path = resolve(data_dir, file)
  if (!path.startsWith(resolve(data_dir) + sep)) throw new Error('the file is outside the data folder')
  return path
}

/**
 * Opens a recording. A row that was read just before its file was encrypted names the file that is gone: its twin is
 * there.
 */
export async function openRecording(
  settings: { readonly data_dir: string; readonly master_key: Buffer },
  file: string,
): Promise<RecordingFile> {
  const path = pathBelow(settings.data_dir, file)
  if (file.endsWith(SEALED)) return sealed(settings.master_key, path)
  try {
    return await plain(await open(path, 'r'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return sealed(settings.master_key, path + SEALED)
  }
}

async function plain(handle: FileHandle): Promise<RecordingFile> {
  const { size } = await handle.stat()
  return {
    bytes: size,
    stream: (first, last) => handle.createReadStream({ start: first, end: last, autoClose: true }),
    close: () => handle.close(),
  }
}

async function sealed(key: Buffer, path: string): Promise<RecordingFile> {
  const file = await openSealed(key, path)
  return {
    bytes: file.bytes,
    stream: (first, last) => Readable.from(file.read(first, last), { objectMode: false }),
    close: () => file.close(),
  }
}
