import type { RecordingCommand } from '../../core/domain/calls/control-commands.ts'
import type { Leg } from '../b2bua/leg.ts'
import type { LiveRecording } from '../b2bua/registry.ts'
import type { ScriptHost } from '../b2bua/script-host.ts'
import type { RecordingChange } from './away/notes.ts'
import { CallRecorder, type RecorderServices } from './recorder.ts'

/** Recordings that no script asks for: those of the API, and those that an outbound policy requires. */

/** Begins a recording whose row the API has written. */
export function recordByApi(
  services: RecorderServices,
  host: Pick<ScriptHost, 'call' | 'leg'>,
  { sid, file, channels, track, trim, callback }: Extract<RecordingCommand, { readonly act: 'start' }>,
): void {
  const source = 'StartCallRecordingAPI'
  new CallRecorder(services, host, () => undefined).start(
    { type: 'start_recording', id: sid, source, name: null, child: null, channels, track, trim, callback },
    null,
    source,
    null,
    { sid, file },
  )
}

/** Carries out what the APIs want of a recording that runs. Returns the outcome. */
export function controlRecording(recording: LiveRecording, command: RecordingChange): string {
  if (command.act === 'pause') recording.pause(command.behavior, 'api')
  else recording[command.act]()
  return 'done'
}

/** Records an admitted call as its outbound policy requires: caller left, called party right (design section 5). */
export function recordByPolicy(
  services: RecorderServices,
  host: Pick<ScriptHost, 'call' | 'leg'>,
  other: Leg | null,
  policy: { readonly channels: number; readonly retention_days: number },
): void {
  new CallRecorder(services, host, () => undefined).start(
    {
      type: 'start_recording',
      id: 'policy',
      source: 'StartCallRecordingAPI',
      name: null,
      child: null,
      channels: policy.channels === 2 ? 2 : 1,
      track: 'both',
      trim: false,
      callback: null,
    },
    other,
    'Trunking',
    policy.retention_days,
  )
}
