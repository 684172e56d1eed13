import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { recordingSeconds } from '../../core/domain/calls/parameters.ts'
import { measured, type PausedBy, paused, resumed, type Timeline } from '../../core/domain/calls/recording-pauses.ts'
import { iso } from '../../core/runtime/clock.ts'
import { newId } from '../../core/runtime/ids.ts'
import { hasRoomForRecording } from '../../core/state/calls/recording-storage.ts'
import { insertRecording, recordingFile, updateRecording } from '../../core/state/calls/recordings.ts'
import { enqueueRecordingCallback } from '../../core/state/delivery/outbox.ts'
import type {
  Event,
  RecordEnded,
  RecordingCallback,
  RecordingFacts,
  RecordLeg,
  StartRecording,
} from '../../markup/interpreter/types.ts'
import type { MethodParams } from '../../media/protocol/schema.ts'
import type { Leg } from '../b2bua/leg.ts'
import { MediaRefusal } from '../b2bua/media.ts'
import type { LiveRecording } from '../b2bua/registry.ts'
import { inspected, type RecordEndedEvent } from './left-recording.ts'
import { requireConsent } from './recording-consent.ts'
import type { ScriptServices } from './services.ts'
import type { SharedScript } from './shared-script.ts'
import { transcribe } from './transcribe.ts'

/** What a recording of one track holds, as seen from the leg: what its peer says, or what it hears. */
const ONE_WAY = { inbound: 'received', outbound: 'sent' } as const

interface Recording {
  readonly sid: string
  readonly file: string
  readonly source: string
  readonly channels: 1 | 2
  readonly track: 'both' | 'inbound' | 'outbound'
  /** The room that is recorded. */
  readonly conference_sid?: string
  readonly callback: RecordingCallback | null
  readonly started_ms: number
  timeline: Timeline
  /** Not the last pause of the timeline, which tells only the first 1000. */
  paused_by: PausedBy | null
  /** Resolves when the media worker is asked to record. It obeys later requests in their order. */
  readonly started: Promise<void>
  readonly ended: (
    event: RecordEndedEvent,
    facts: RecordingFacts | null,
    absent: 16101 | 16102 | null,
    file: string,
  ) => void
}

/** The source of a message that a caller leaves. Every other source records a conversation. */
const MESSAGE = 'RecordVerb'
/** A shorter recording counts as absent (voice-compat.md §10, 16101). */
const LEAST_MS = 100
const DAY_MS = 86_400_000

/** What is to be recorded, and who hears of it. */
interface RecordingOrder {
  readonly id: string
  readonly source: string
  readonly retention_days?: number | null
  readonly channels: 1 | 2
  readonly track: Recording['track']
  readonly conference_sid?: string
  readonly callback: RecordingCallback | null
  /** The row that the API has written. */
  readonly row?: { readonly sid: string; readonly file: string }
  readonly params: Omit<MethodParams<'record.start'>, 'session_id' | 'recording_id' | 'file'>
  readonly started?: (sid: string) => void
  readonly ended: Recording['ended']
  readonly failed: (detail: string) => void
}

export type RecorderServices = Pick<ScriptServices, 'config' | 'state' | 'calls' | 'machine_id'>

/** The recordings of one script: rows, files and callbacks. The media worker may end them after the leg has ended. */
export class CallRecorder {
  readonly #services: RecorderServices
  readonly #host: SharedScript['host']
  readonly #emit: (event: Event) => void
  /** The recording's sid by command id. */
  readonly #live = new Map<string, string>()
  #last: { sid: string; url: string; duration_seconds: number } | null = null

  constructor(services: RecorderServices, host: SharedScript['host'], emit: (event: Event) => void) {
    this.#services = services
    this.#host = host
    this.#emit = emit
  }

  /** The latest finished recording of this script. */
  get last() {
    return this.#last
  }

  /** The Record verb: records the far end until silence, a key, the maximum length or the end of the leg. */
  record(command: RecordLeg): void {
    const failed = (detail: string): void => {
      this.#host.call.event('warning', null, { detail: `recording failed: ${detail}` })
      this.#emit({ type: 'record_ended', id: command.id, reason: 'failed', key: null, recording: null, absent: null })
    }
    void this.#begin({
      id: command.id,
      source: MESSAGE,
      channels: 1,
      track: 'inbound',
      callback: command.callback,
      params: {
        channels: 1,
        left: this.#host.leg.id,
        right: null,
        what: 'received',
        max_ms: command.max_seconds * 1000,
        silence_ms: command.silence_seconds === 0 ? null : Math.max(100, command.silence_seconds * 1000),
        finish_keys: command.finish_on_key,
        beep: command.beep,
        trim: command.trim,
      },
      ended: (event, recording, absent, file) => {
        const key = event.key ?? null
        this.#emit({ type: 'record_ended', id: command.id, reason: reasonOf(event), key, recording, absent })
        if (recording && command.transcribe)
          transcribe(this.#services, this.#host, recording, file, command.transcribe.callback)
      },
      failed,
    })
  }

  /** Records this leg, or this leg and a child, in the background. */
  start(
    command: StartRecording,
    child: Leg | null,
    source: string = command.source,
    retention_days: number | null = null,
    row?: { readonly sid: string; readonly file: string },
  ): void {
    const { leg } = this.#host
    const { track } = command
    const one_way = track !== 'both'
    const channels = one_way ? 1 : command.channels
    void this.#begin({
      id: command.id,
      source,
      retention_days,
      ...(row ? { row } : {}),
      channels,
      track: command.track,
      callback: command.callback,
      params: {
        channels,
        left: leg.id,
        right: one_way ? null : (child?.id ?? null),
        what: track === 'both' ? 'both' : ONE_WAY[track],
        max_ms: null,
        silence_ms: null,
        finish_keys: '',
        beep: false,
        trim: command.trim,
      },
      started: sid => this.#emit({ type: 'recording_started', id: command.id, sid, url: this.#url(sid) }),
      ended: (_event, recording) => this.#emit({ type: 'recording_ended', id: command.id, recording }),
      failed: detail => {
        this.#host.call.event('warning', null, { detail: `recording failed: ${detail}`, source })
        this.#emit({ type: 'activity_ended', id: command.id, number: null, detail: `recording failed: ${detail}` })
        this.#emit({ type: 'recording_ended', id: command.id, recording: null })
      },
    })
  }

  /** Records the mix of a room until it ends, and `named` on a channel of its own. */
  startRoom(
    id: string,
    conference_sid: string,
    named: Pick<Leg, 'id'> | null,
    { trim, callback }: Pick<StartRecording, 'trim' | 'callback'>,
  ): void {
    const channels = named ? 2 : 1
    void this.#begin({
      id,
      source: 'Conference',
      conference_sid,
      channels,
      track: 'both',
      callback,
      params: {
        channels,
        left: named?.id ?? null,
        right: null,
        conference_id: conference_sid,
        what: 'both',
        max_ms: null,
        silence_ms: null,
        finish_keys: '',
        beep: false,
        trim,
      },
      ended: () => undefined,
      failed: detail =>
        this.#host.call.event('warning', null, { detail: `recording failed: ${detail}`, source: 'Conference' }),
    })
  }

  stop(id: string): void {
    const recording_id = this.#live.get(id)
    if (!recording_id) return
    this.#host.leg.session.hub
      .request('record.stop', { recording_id })
      .catch(err => this.#host.call.log.debug({ err, recording_id }, 'recording was not stopped'))
  }

  #controls(recording: Recording): LiveRecording {
    const { call, leg } = this.#host
    const { calls } = this.#services
    const { sid } = recording
    const { hub } = leg.session
    const failed = (err: unknown): void => call.log.debug({ err, recording_id: sid }, 'a recording was not changed')
    // The row changes once the worker has obeyed: from then on nothing of the pause is in the file.
    const save = (status: 'paused' | 'in-progress'): Promise<void> => {
      const changes = { status, pauses: JSON.stringify(recording.timeline) }
      return call.persist(trx => updateRecording(trx, sid, changes, call.clock.now()))
    }
    const controls: LiveRecording = {
      call_sid: call.sid,
      get paused_by() {
        return recording.paused_by
      },
      stop: () => void recording.started.then(() => hub.request('record.stop', { recording_id: sid })).catch(failed),
      pause: (behavior, by) => {
        const silent = behavior === 'silence'
        recording.timeline = paused(recording.timeline, { behavior, by }, this.#elapsed(recording))
        recording.paused_by = by
        recording.started
          .then(() => hub.request('record.pause', { recording_id: sid, silent }))
          .then(() => save('paused'))
          .catch(failed)
      },
      resume: () => {
        if (calls.hushed(call.sid)) return controls.pause('silence', 'key')
        recording.paused_by = null
        recording.timeline = resumed(recording.timeline, this.#elapsed(recording))
        recording.started
          .then(() => hub.request('record.resume', { recording_id: sid }))
          .then(() => save('in-progress'))
          .catch(failed)
      },
    }
    return controls
  }

  #elapsed({ started_ms }: Recording): number {
    return this.#host.call.clock.now() - started_ms
  }

  async #begin(wanted: RecordingOrder): Promise<void> {
    const { call, leg } = this.#host
    const { config, state, calls } = this.#services
    const sid = wanted.row?.sid ?? newId.recording()
    const started_ms = call.clock.now()
    const file = wanted.row?.file ?? recordingFile(sid, started_ms)
    let begun = (): void => undefined
    const started = new Promise<void>(resolve => {
      begun = resolve
    })
    const recording: Recording = { ...wanted, sid, file, started_ms, timeline: [], paused_by: null, started }
    const path = join(config.data_dir, file)
    const { hub } = leg.session
    this.#live.set(wanted.id, sid)
    const controls = this.#controls(recording)
    calls.recordings.set(sid, controls)
    if (calls.hushed(call.sid)) controls.pause('silence', 'key')
    hub.listen(sid, event => {
      if (event.event === 'record.ended') void this.#ended(wanted.id, recording, event)
    })
    try {
      if (wanted.source !== MESSAGE) await requireConsent(this.#services, call)
      if (!(await hasRoomForRecording(state.db, call.project_id, config.recordings_quota_bytes)))
        throw new MediaRefusal('quota', 'the recordings of the project have reached their quota')
      await this.#save(wanted, recording)
      const session_id = leg.session.id
      const recorded = hub.request('record.start', { ...wanted.params, session_id, recording_id: sid, file: path })
      // Not once it records: a pause must leave nothing before it in the file.
      begun()
      await recorded
      hub.onLost(sid, () => void this.#lost(wanted.id, recording))
      wanted.started?.(sid)
      await this.#tell(recording, 'in-progress', 0, null)
    } catch (error) {
      hub.forget(sid)
      this.#live.delete(wanted.id)
      calls.recordings.delete(sid)
      const detail = error instanceof MediaRefusal ? `${error.reason}: ${error.detail}` : String(error)
      await call.persist(trx => updateRecording(trx, sid, { status: 'absent' }, call.clock.now()))
      await this.#tell(recording, 'absent', 0, null)
      wanted.failed(detail)
    }
  }

  /** Writes the row of a recording. In one that the API has written, it names our machine and the true beginning. */
  #save({ row, retention_days, ...wanted }: RecordingOrder, { sid, file, started_ms }: Recording): Promise<void> {
    const { call } = this.#host
    const { machine_id } = this.#services
    const started_at = iso(started_ms)
    if (row) return call.persist(trx => updateRecording(trx, sid, { machine_id, started_at }, started_ms))
    const { source, channels, track, conference_sid = null } = wanted
    const expires_at = retention_days == null ? null : iso(started_ms + retention_days * DAY_MS)
    const about = { sid, call_sid: call.sid, project_id: call.project_id, file, machine_id }
    const made = { ...about, source, channels, track, conference_sid, expires_at }
    return call.persist(trx => insertRecording(trx, made, started_ms))
  }

  /** Ends a recording whose worker died. The next worker repairs the file and reports its length (design section 8). */
  async #lost(id: string, recording: Recording): Promise<void> {
    const { call, leg } = this.#host
    const path = join(this.#services.config.data_dir, recording.file)
    const found = await inspected(leg.session.hub, call, recording.sid, path)
    if (found) return await this.#ended(id, recording, { event: 'record.ended', recording_id: recording.sid, ...found })
    // The sweep for unfinished recordings completes the row when a worker is back.
    leg.session.hub.forget(recording.sid)
    this.#live.delete(id)
    this.#services.calls.recordings.delete(recording.sid)
  }

  async #ended(id: string, recording: Recording, event: RecordEndedEvent): Promise<void> {
    const { call, leg } = this.#host
    const { config, calls } = this.#services
    leg.session.hub.forget(recording.sid)
    this.#live.delete(id)
    calls.recordings.delete(recording.sid)
    const timeline = resumed(recording.timeline, call.clock.now() - recording.started_ms)
    const pauses = timeline.length === 0 ? null : JSON.stringify(measured(timeline, event.pauses ?? []))
    const absent = event.empty ? 16102 : event.duration_ms < LEAST_MS ? 16101 : null
    const nothing = absent !== null || event.reason === 'failed' || event.sha256 === null
    const duration_seconds = recordingSeconds(event.duration_ms)
    const url = this.#url(recording.sid)
    if (nothing) await rm(join(config.data_dir, recording.file), { force: true }).catch(() => undefined)
    await call.persist(trx =>
      updateRecording(
        trx,
        recording.sid,
        nothing
          ? { status: 'absent', error_number: absent, duration_ms: event.duration_ms }
          : { status: 'completed', duration_ms: event.duration_ms, bytes: event.bytes, sha256: event.sha256, pauses },
        call.clock.now(),
      ),
    )
    await this.#tell(recording, nothing ? 'absent' : 'completed', duration_seconds, absent)
    if (!nothing) this.#last = { sid: recording.sid, url, duration_seconds }
    const path = join(config.data_dir, recording.file)
    recording.ended(event, nothing ? null : { sid: recording.sid, url, duration_seconds }, absent, path)
  }

  async #tell(
    recording: Recording,
    status: 'in-progress' | 'completed' | 'absent',
    duration_seconds: number,
    error_number: number | null,
  ): Promise<void> {
    if (!recording.callback?.events.includes(status)) return
    const { call } = this.#host
    const { account_sid } = call.facts
    await call.persistCallbacks(trx =>
      enqueueRecordingCallback(trx, recording.callback, {
        account_sid,
        call_sid: call.sid,
        conference_sid: recording.conference_sid ?? null,
        recording_sid: recording.sid,
        url: this.#url(recording.sid),
        status,
        duration_seconds,
        channels: recording.channels,
        started_ms: recording.started_ms,
        source: recording.source,
        track: recording.track,
        error_number,
        project_id: call.project_id,
        now_ms: call.clock.now(),
      }),
    )
  }

  #url(sid: string): string {
    const { call } = this.#host
    return `${this.#services.config.base_url}/2010-04-01/Accounts/${call.facts.account_sid}/Recordings/${sid}.wav`
  }
}

function reasonOf(event: RecordEndedEvent): RecordEnded['reason'] {
  switch (event.reason) {
    case 'leg_closed':
      return 'hangup'
    case 'disk_full':
      return 'failed'
    default:
      return event.reason
  }
}
