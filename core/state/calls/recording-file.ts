import type { FileHandle } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { finished, Readable } from 'node:stream'
import { MachineFileError, type MachineFiles } from '../../runtime/machine-files.ts'
import type { ObjectStore } from '../../runtime/object-store.ts'
import { openPlainFile } from '../../runtime/plain-file.ts'
import { StoreError } from '../../runtime/s3-requests.ts'
import { type ByteSource, fileSource, openSealed } from '../../runtime/sealed-file.ts'
import { objectKey, SEALED } from './recording-storage.ts'

/** Where this installation keeps the files of its recordings. */
export interface RecordingStore {
  readonly settings: { readonly data_dir: string; readonly master_key: Buffer }
  readonly objects: ObjectStore | null
  /** The files of the other machines; null or undefined: there are none. */
  readonly machines?: MachineFiles | null
}

/** The content of a recording's file, encrypted or not. */
interface RecordingFile {
  readonly bytes: number
  /** Reads from `first` to `last` inclusive. The file closes with the stream, also when the client disconnects. */
  stream(first: number, last: number): Readable
  close(): Promise<void>
}

/**
 * Returns the path of a recording's file. The name comes from our own rows; as a precaution, it is still rejected if it
 * leads out of the data folder.
 */
export function pathBelow(data_dir: string, file: string): string {
  const path = resolve(data_dir, file)
  if (!path.startsWith(resolve(data_dir) + sep)) throw new Error('the file is outside the data folder')
  return path
}

/**
 * Opens a recording on disk or in the object store. The row may have been read just before its file was encrypted or
 * moved: a missing plain file is looked up as encrypted, a missing encrypted file in the store.
 * @throws StoreError when the store is unreachable or does not have the object
 * @throws MachineFileError when the machine that has the file does not answer, or does not have it
 */
export async function openRecording(store: RecordingStore, file: string, machine_id = ''): Promise<RecordingFile> {
  const key = objectKey(file)
  if (key !== null) return stored(store, key)
  if (store.machines?.isElsewhere(machine_id)) return elsewhere(store, store.machines, machine_id, file)
  const path = pathBelow(store.settings.data_dir, file)
  if (!file.endsWith(SEALED)) {
    const found = await unlessGone(openPlainFile(path))
    return found ? plain(found) : openRecording(store, file + SEALED)
  }
  const found = await unlessGone(fileSource(path))
  return found ? sealed(store.settings.master_key, found) : stored(store, file)
}

/** Reports whether a recording's file lies in the data folder and is not encrypted yet. */
export const isPlainFile = (file: string): boolean => objectKey(file) === null && !file.endsWith(SEALED)

/** Opens a recording of another machine, which may encrypt it or move it into the store at any time. */
async function elsewhere(
  store: RecordingStore,
  machines: MachineFiles,
  machine_id: string,
  file: string,
): Promise<RecordingFile> {
  if (file.endsWith(SEALED))
    return sealed(store.settings.master_key, machines.source(machine_id, file)).catch(error => {
      if (isMissing(error) && store.objects) return stored(store, file)
      throw error
    })
  try {
    const bytes = await machines.size(machine_id, file)
    return {
      bytes,
      stream: (first, last) =>
        Readable.from(readPlain(store, machines, { machine_id, file }, first, last), { objectMode: false }),
      close: () => Promise.resolve(),
    }
  } catch (error) {
    if (isMissing(error)) return elsewhere(store, machines, machine_id, file + SEALED)
    throw error
  }
}

const isMissing = (error: unknown): boolean => error instanceof MachineFileError && error.missing

/** Yields a plain recording of another machine, which may encrypt it at any moment. The content stays the same. */
async function* readPlain(
  store: RecordingStore,
  machines: MachineFiles,
  { machine_id, file }: { readonly machine_id: string; readonly file: string },
  first: number,
  last: number,
): AsyncGenerator<Buffer> {
  let at = first
  try {
    for await (const part of machines.read(machine_id, file, first, last)) {
      yield part
      at += part.length
    }
  } catch (error) {
    if (!isMissing(error)) throw error
    const sealed_now = await elsewhere(store, machines, machine_id, file + SEALED)
    for await (const part of sealed_now.stream(at, last)) yield part
  }
}

const unlessGone = <T>(opening: Promise<T>): Promise<T | null> =>
  opening.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })

function stored({ settings, objects }: RecordingStore, key: string): Promise<RecordingFile> {
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
    stream(first, last) {
      const stream = Readable.from(file.read(first, last), { objectMode: false })
      // Read or not: a generator that was never asked does not close its source, as when an answer becomes a 304.
      finished(stream, () => void file.close())
      return stream
    },
    close: () => file.close(),
  }
}
