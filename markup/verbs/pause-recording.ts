import { choice } from './attributes.ts'
import { next, verb } from './verb.ts'

/**
 * Pauses every recording of the call: a verb of our own. The recording has silence meanwhile, or with `skip` nothing of
 * the pause.
 */
export const pauseRecording = verb(
  'PauseRecording',
  { behavior: choice(['silence', 'skip'], { default: 'silence' }) },
  {
    // Nothing is recorded before the answer.
    answers: () => false,
    begin(node, turn) {
      const { behavior } = node.attributes
      turn.emit({ type: 'pause_recordings', id: turn.id('pause'), behavior, by: 'document' })
      return next
    },
  },
)

/** Resumes every recording of the call that is paused. */
export const resumeRecording = verb(
  'ResumeRecording',
  {},
  {
    answers: () => false,
    begin(_node, turn) {
      turn.emit({ type: 'resume_recordings', id: null })
      return next
    },
  },
)
