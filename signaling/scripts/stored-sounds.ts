import { chown, type FileHandle, link, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { mediaAddress } from '../../core/domain/calls/media-address.ts'
import { newId } from '../../core/runtime/ids.ts'
import type { Log } from '../../core/runtime/log.ts'
import { newPlainFile } from '../../core/runtime/plain-file.ts'
import { findProjectRecording, type RecordingRow } from '../../core/state/calls/calls.ts'
import { isPlainFile, openRecording, pathBelow, type RecordingStore } from '../../core/state/calls/recording-file.ts'
import type { Db } from '../../core/state/index.ts'
import { signalingNodes } from '../../core/state/nodes/nodes.ts'
import { MAX_SOUND_BYTES, type PlaySource, SOUNDS_FOLDER } from '../../media/protocol/schema.ts'

/** The call that names a sound. */
interface Asker {
  readonly project_id: string
  readonly facts: { readonly account_sid: string }
}

/** A sound that a media worker may read until `release`. */
export interface LentSound {
  readonly source: PlaySource
  release(): void
}

type Lending = LentSound | { readonly refused: string }

/** The most sounds that a project's calls have at once. Each may be a copy of up to `MAX_SOUND_BYTES`. */
const MAX_LENT = 64

interface StoredSoundsOptions {
  /** Its copies begin with this name, because several nodes may share the folder. */
  readonly node_id: string
  readonly base_url: string
  readonly store: RecordingStore
  readonly db: Db
  readonly log: Log
}

/**
 * The sounds that calls may play from this platform's own addresses, such as the `RecordingUrl` of an action. They are
 * read from the store, never over HTTP, and only for calls of the project that they belong to. The recordings at rest
 * are encrypted and a media worker has no key, so a copy lies in its folder while it is played.
 */
export class StoredSounds {
  readonly #options: StoredSoundsOptions
  readonly #lent = new Map<string, number>()

  constructor(options: StoredSoundsOptions) {
    this.#options = options
  }

  /** Removes the copies of nodes that no longer run, such as a killed one. */
  async sweep(): Promise<void> {
    const { db, node_id } = this.#options
    const copies = await this.#copies()
    if (copies.length === 0) return
    // Read after the folder, so that a node that has just started keeps its copies.
    const running = new Set([node_id, ...(await signalingNodes(db)).map(({ id }) => id)])
    const left = copies.filter(file => !running.has(file.slice(0, file.indexOf('.'))))
    for (const file of left) await rm(join(this.#folder, file), { force: true })
  }

  isOwn(url: string): boolean {
    return mediaAddress(url, this.#options.base_url) !== null
  }

  /** Returns the recording at an own address; null when the asker's project has none there. */
  async find(asker: Asker, url: string): Promise<RecordingRow | null> {
    const { base_url, db } = this.#options
    const address = mediaAddress(url, base_url)
    if (!address || (address.account_sid ?? asker.facts.account_sid) !== asker.facts.account_sid) return null
    const row = await findProjectRecording(db, asker.project_id, address.recording_sid)
    return row?.status === 'completed' ? row : null
  }

  /** Makes the sound at an own address readable for a media worker. Never rejects. */
  async lend(asker: Asker, url: string): Promise<Lending> {
    const { project_id } = asker
    const count = this.#lent.get(project_id) ?? 0
    if (count >= MAX_LENT) return { refused: `the project plays ${count} recordings at once` }
    this.#lent.set(project_id, count + 1)
    const file = `${this.#options.node_id}.${newId.uuid()}.wav`
    const release = (): void => {
      const left = (this.#lent.get(project_id) ?? 1) - 1
      if (left > 0) this.#lent.set(project_id, left)
      else this.#lent.delete(project_id)
      rm(join(this.#folder, file), { force: true }).catch(err =>
        this.#options.log.warn({ err, file }, 'the copy of a recording was not removed'),
      )
    }
    try {
      const row = await this.find(asker, url)
      const refused = row === null ? NO_SUCH_SOUND : await this.#copy(row, join(this.#folder, file))
      if (refused === null) return { source: { kind: 'file', path: `${SOUNDS_FOLDER}/${file}` }, release }
      release()
      return { refused }
    } catch (err) {
      release()
      this.#options.log.warn({ err }, 'a recording could not be read from the store')
      return { refused: 'the recording cannot be read from the store' }
    }
  }

  #copies(): Promise<string[]> {
    return readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
  }

  get #folder(): string {
    return join(this.#options.store.settings.data_dir, SOUNDS_FOLDER)
  }

  /** Copies a recording to `to`, for the user of the media workers. Returns why not, or null. */
  async #copy(row: RecordingRow, to: string): Promise<string | null> {
    const { store } = this.#options
    const owner = await stat(join(this.#folder, '..'))
    const made = await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const foreign = owner.uid !== process.getuid?.()
    if (made !== undefined && foreign) await chown(this.#folder, owner.uid, owner.gid)
    const here = !store.machines?.isElsewhere(row.machine_id)
    if (here && isPlainFile(row.file) && (await linked(pathBelow(store.settings.data_dir, row.file), to))) return null
    const recording = await openRecording(store, row.file, row.machine_id)
    if (recording.bytes > MAX_SOUND_BYTES) {
      await recording.close()
      return `the recording has ${recording.bytes} bytes; at most ${MAX_SOUND_BYTES} are played`
    }
    let target: FileHandle | null = null
    try {
      target = await newPlainFile(to)
      if (foreign) await target.chown(owner.uid, owner.gid)
    } catch (error) {
      await Promise.all([recording.close(), target?.close()])
      throw error
    }
    await pipeline(recording.stream(0, recording.bytes - 1), target.createWriteStream())
    return null
  }
}

/** Gives a file that is not encrypted yet a second name; false when it has been encrypted meanwhile. */
const linked = (file: string, to: string): Promise<boolean> =>
  link(file, to).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )

/** What a caller learns of a recording that is missing, and of another project's. */
export const NO_SUCH_SOUND = 'there is no such recording'
