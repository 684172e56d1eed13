import { connect } from './connect.ts'
import { dial } from './dial.ts'
import { echo } from './echo.ts'
import { enqueue } from './enqueue.ts'
import { gather } from './gather.ts'
import { hangup } from './hangup.ts'
import { leave } from './leave.ts'
import { pause } from './pause.ts'
import { pauseRecording, resumeRecording } from './pause-recording.ts'
import { play } from './play.ts'
import { record } from './record.ts'
import { redirect } from './redirect.ts'
import { refer } from './refer.ts'
import { reject } from './reject.ts'
import { say } from './say.ts'
import { start } from './start.ts'
import { stop } from './stop.ts'
import { pay, prompt, sms } from './unsupported.ts'
import type { Verb } from './verb.ts'

/** All verbs. Adding one is a file and a line here. */
export const VERBS: readonly Verb[] = [
  say,
  play,
  pause,
  gather,
  record,
  dial,
  redirect,
  hangup,
  reject,
  enqueue,
  leave,
  refer,
  connect,
  start,
  stop,
  pauseRecording,
  resumeRecording,
  echo,
  sms,
  pay,
  prompt,
]

export const VERBS_BY_NAME: ReadonlyMap<string, Verb> = new Map(VERBS.map(verb => [verb.name, verb]))
