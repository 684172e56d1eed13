import { readTimeline } from '../../core/domain/calls/recording-pauses.ts'
import type { RecordingRow } from '../../core/state/calls/calls.ts'
import type { Parties } from '../../core/state/calls/recording-list.ts'
import { Count64, described, Instant, list, nullable, oneOf, resource, type Static, Type } from '../http/schema.ts'

const Text = Type.String()

export const RecordingStatus = oneOf('in-progress', 'paused', 'stopped', 'processing', 'completed', 'absent')

export const Recording = resource('Recording', {
  audio_href: nullable(Text, { description: 'Where the audio can be read; null while there is none.' }),
  bytes: nullable(Count64),
  call_id: Text,
  conference_id: described(nullable(Text), 'The conference whose mix it holds; null for a recording of a call.'),
  channels: Type.Integer(),
  created_at: Instant,
  duration_ms: nullable(Count64),
  error_number: nullable(Type.Integer()),
  expires_at: nullable(Instant),
  from: nullable(Text),
  id: Text,
  pauses: described(
    list(
      resource('RecordingPause', {
        at_ms: described(Count64, 'Where the pause begins in the audio.'),
        length_ms: described(nullable(Count64), 'How long it lasted; null while it lasts.'),
        behavior: described(
          oneOf('skip', 'silence'),
          '`silence`: the audio has as much silence. `skip`: it has nothing of the pause.',
        ),
        by: described(
          oneOf('api', 'document', 'key'),
          'A request, `<PauseRecording>`, or the keys of a sensitive `<Gather>`.',
        ),
      }),
    ),
    'Its timeline: when it was paused. Times are estimates until it is completed.',
  ),
  sha256: nullable(Text),
  source: Text,
  started_at: Instant,
  status: RecordingStatus,
  to: nullable(Text),
  track: oneOf('both', 'inbound', 'outbound'),
})

/** Presents a recording of a call between `parties`. The lists leave out deleted ones. */
export const presentRecording = (row: RecordingRow, parties: Parties | undefined): Static<typeof Recording> => ({
  audio_href: row.status === 'completed' ? `/v1/recordings/${row.sid}.wav` : null,
  bytes: row.bytes,
  call_id: row.call_sid,
  conference_id: row.conference_sid,
  channels: row.channels,
  created_at: row.created_at,
  duration_ms: row.duration_ms,
  error_number: row.error_number,
  expires_at: row.expires_at,
  from: parties?.from_number ?? null,
  id: row.sid,
  pauses: [...readTimeline(row.pauses)],
  sha256: row.sha256,
  source: row.source,
  started_at: row.started_at,
  status: row.status === 'deleted' ? 'absent' : row.status,
  to: parties?.to_number ?? null,
  track: row.track,
})
