import type { FileHandle } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { Readable } from 'node:stream'
import { openPlainFile } from '../../core/runtime/plain-file.ts'
import { StoreError } from '../../core/runtime/s3-requests.ts'
import { type ByteSource, fileSource, openSealed } from '../../core/runtime/sealed-file.ts'
import { objectKey, SEALED } from '../../core/state/calls/recording-storage.ts'
import type { Services } from '../http/services.ts'

/** The content of a recording's file, encrypted or not. */
interface RecordingFile {
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
 * Opens a recording, here or in the object store. A row that was read just before its file was encrypted or moved names
 * a file that is gone: what became of it is there.
 * @throws StoreError when the store cannot be reached
 */
export async function openRecording(services: Needed, file: string): Promise<RecordingFile> {
  const key = objectKey(file)
  if (key !== null) return stored(services, key)
  const path = pathBelow(services.settings.data_dir, file)
  if (!file.endsWith(SEALED)) {
    const found = await unlessGone(openPlainFile(path))
    return found ? plain(found) : openRecording(services, file + SEALED)
  }
  const found = await unlessGone(fileSource(path))
  return found ? sealed(services.settings.master_key, found) : stored(services, file)
}

type Needed = Pick<Services, 'settings' | 'objects'>

const unlessGone = <T>(opening: Promise<T>): Promise<T | null> =>
  opening.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })

function stored({ settings, objects }: Needed, key: string): Promise<RecordingFile> {
  if (!objects) throw new StoreError(404, `no object store holds ${key}`)
  return sealed(settings.master_key, objects.source(key))
}

async function plain(handle: FileHandle): Promise<RecordingFile> {
  const { size } = await handle.stat()
  return {
    bytes: size,
    stream: (first, last) => handle.createReadStream({ start: first, end: last, autoClose: true }),
    close: () => handle.close(),
  }
}

async function sealed(key: Buffer, source: ByteSource): Promise<RecordingFile> {
  const file = await openSealed(key, source)
  return {
    bytes: file.bytes,
    stream: (first, last) => Readable.from(file.read(first, last), { objectMode: false }),
    close: () => file.close(),
  }
}
