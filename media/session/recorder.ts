import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve, sep } from 'node:path'
import type { Door } from '../../core/runtime/doors.ts'
import type { Conference, EngineEvent, Session } from '../../native/index.ts'
import type { EventFields, MethodParams } from '../protocol/schema.ts'
import type { WorkerParts } from './client-sessions.ts'
import type { MediaLeg } from './leg.ts'
import type { OpenFiles } from './open-files.ts'

type RecordRequest = MethodParams<'record.start'>
export type RecordingEnd = EventFields<'record.ended'>

/** What the file has of a pause: silence, or nothing. */
type Paused = 'silent' | 'skipped'

interface Recording {
  readonly request: RecordRequest
  readonly native_id: string
  readonly of: Pick<Session | Conference, 'stopRecord' | 'pauseRecord'>
  /** The leg that hears the beep. */
  readonly left: MediaLeg | null
  readonly right: MediaLeg | null
  readonly record: (native_id: string, file: string) => void
  /** The beep is playing. The data plane does not record yet. */
  waiting: boolean
  paused: Paused | null
  /** Those who wait until the packet thread has paused or resumed, in the order in which it was asked. */
  readonly asked: (() => void)[]
  over: boolean
}

const BEEP = { kind: 'tone', hz: [1000], on_ms: 300, off_ms: 0, total_ms: 300 } as const

/** The recordings of one client. Each ends with exactly one `record.ended`. */
export class Recorder {
  readonly #data_dir: string
  readonly #recordings: Door
  readonly #onEnded: (ended: RecordingEnd) => void
  readonly #byId = new Map<string, Recording>()
  readonly #byNative = new Map<string, Recording>()
  readonly #nativeId: () => string
  readonly #files: OpenFiles

  constructor(
    shared: Pick<WorkerParts, 'data_dir' | 'recordings' | 'nativeId' | 'files'>,
    onEnded: (ended: RecordingEnd) => void,
  ) {
    this.#data_dir = shared.data_dir
    this.#recordings = shared.recordings
    this.#nativeId = shared.nativeId
    this.#files = shared.files
    this.#onEnded = onEnded
  }

  has(recording_id: string): boolean {
    return this.#byId.has(recording_id)
  }

  get running(): number {
    return this.#byId.size
  }

  /** Returns why a file may not be written, or null. It must be new and inside the data folder. */
  refuseFile(file: string): string | null {
    return (
      this.outside(file) ?? (existsSync(this.path(file)) || this.#files.has(file) ? 'the file exists already' : null)
    )
  }

  outside(file: string): string | null {
    const inside = resolve(file) === file && file.startsWith(`${resolve(this.#data_dir)}${sep}`)
    return inside ? null : 'the file is not inside the data folder'
  }

  /** Returns the path by which this process accesses a file inside the data folder. */
  path(file: string): string {
    return this.#recordings.path(file)
  }

  writes(file: string): boolean {
    return [...this.#byId.values()].some(({ request }) => request.file === file)
  }

  start(request: RecordRequest, session: Session, left: MediaLeg, right: MediaLeg | null): void {
    const { channels, what, max_ms, silence_ms, finish_keys, trim } = request
    this.#start(request, session, left, right, (recording_id, file) =>
      session.record({
        recording_id,
        file,
        channels,
        left: left.stream,
        right: right?.stream ?? null,
        what: what === 'sent' ? 'sent' : what === 'both' && !right ? 'both' : 'received',
        max_ms,
        silence_ms,
        finish_keys,
        trim,
      }),
    )
  }

  /** Records a conference. Two channels hold the named participant, and the mix. */
  startRoom(request: RecordRequest, room: Conference, named: MediaLeg | null): void {
    const { channels, max_ms, trim } = request
    this.#start({ ...request, beep: false }, room, null, null, (recording_id, file) =>
      room.record({ recording_id, file, channels, named: named?.stream ?? null, max_ms, trim }),
    )
  }

  #start(
    request: RecordRequest,
    of: Recording['of'],
    left: MediaLeg | null,
    right: MediaLeg | null,
    record: Recording['record'],
  ): void {
    mkdirSync(dirname(this.path(request.file)), { recursive: true })
    const native_id = this.#nativeId()
    const waiting = request.beep && left !== null
    const recording: Recording = {
      request,
      native_id,
      of,
      left,
      right,
      record,
      waiting,
      paused: null,
      asked: [],
      over: false,
    }
    this.#byId.set(request.recording_id, recording)
    this.#byNative.set(native_id, recording)
    this.#files.begin(request.file)
    if (waiting) left.beep(BEEP, () => this.#begin(recording))
    else this.#begin(recording)
  }

  stop(recording_id: string): boolean {
    const recording = this.#byId.get(recording_id)
    if (!recording) return false
    if (recording.waiting) this.#nothing(recording, 'stopped')
    else recording.of.stopRecord(recording.native_id)
    return true
  }

  /**
   * Pauses a recording, or resumes it with null. Resolves when the packet thread has obeyed or the recording has ended:
   * from then on, nothing of a pause is in the file. False when it does not run.
   */
  async pause(recording_id: string, paused: Paused | null): Promise<boolean> {
    const recording = this.#byId.get(recording_id)
    if (!recording) return false
    recording.paused = paused
    if (recording.waiting) return true
    const obeyed = new Promise<void>(resolve => {
      recording.asked.push(resolve)
    })
    recording.of.pauseRecord(recording.native_id, paused !== null, paused === 'silent')
    await obeyed
    return true
  }

  /** Ends the leg's recordings whose beep still plays. The data plane ends the others. */
  legClosed(leg: MediaLeg): void {
    for (const recording of [...this.#byId.values()]) {
      if (recording.waiting && (recording.left === leg || recording.right === leg))
        this.#nothing(recording, 'leg_closed')
    }
  }

  onNative(event: Extract<EngineEvent, { type: 'record_ended' | 'record_changed' }>): boolean {
    const recording = this.#byNative.get(event.recording_id)
    if (!recording) return false
    if (event.type === 'record_changed') {
      recording.asked.shift()?.()
      return true
    }
    this.#end(recording, {
      recording_id: recording.request.recording_id,
      reason: event.reason,
      ...(event.key === '' ? {} : { key: event.key }),
      ...(event.detail === '' ? {} : { detail: event.detail }),
      duration_ms: event.duration_ms,
      bytes: event.bytes,
      sha256: event.sha256 === '' ? null : event.sha256,
      empty: event.empty || event.duration_ms === 0,
      ...(event.pauses.length === 0 ? {} : { pauses: event.pauses.map(pause => ({ ...pause })) }),
    })
    return true
  }

  #begin(recording: Recording): void {
    if (recording.over) return
    recording.waiting = false
    const { request, native_id, of, record } = recording
    record(native_id, this.path(request.file))
    if (!recording.paused) return
    recording.asked.push(() => undefined)
    of.pauseRecord(native_id, true, recording.paused === 'silent')
  }

  #nothing(recording: Recording, reason: RecordingEnd['reason']): void {
    const { recording_id } = recording.request
    this.#end(recording, { recording_id, reason, duration_ms: 0, bytes: 0, sha256: null, empty: true })
  }

  #end(recording: Recording, ended: RecordingEnd): void {
    if (recording.over) return
    recording.over = true
    for (const obeyed of recording.asked) obeyed()
    this.#byId.delete(recording.request.recording_id)
    this.#byNative.delete(recording.native_id)
    this.#files.end(recording.request.file)
    this.#onEnded(ended)
  }
}
