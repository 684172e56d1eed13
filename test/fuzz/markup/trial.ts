import { checkDocument } from '../../../markup/check.ts'
import { startRun, step } from '../../../markup/interpreter/step.ts'
import type { Command, Event, Run, RunKind, StepResult } from '../../../markup/interpreter/types.ts'
import { eventLine, replay, startLine } from '../../../markup/replay/replay.ts'
import { BASE, FACTS } from '../../unit/markup/phone.ts'
import { answersTo } from '../../unit/markup/world.ts'
import { pick } from './mutate.ts'

const MAX_STEPS = 60
const MAX_COMMANDS = 400
const KINDS: readonly RunKind[] = ['call', 'call', 'call', 'call', 'whisper', 'queue_wait', 'conference_wait']

/**
 * Checks one document and runs it against a caller and an executor that do likely and unlikely things in any order.
 * Throws when an invariant is violated: endless commands, a command after the end, a run that JSON does not preserve, a
 * log that does not replay, a check that disagrees with the run about syntax. Returns the check's verdict and the log.
 */
export function trial(text: string, random: () => number): { came_to: 'refused' | 'warned' | 'clean'; log: string } {
  const kind = pick(random, KINDS)
  const checked = checkDocument(text, { kind, url: BASE })
  const lines: string[] = []
  const possible: Event[] = []
  const result = begin(kind, random)
  lines.push(startLine(result.facts, result.step))
  let last = result.step
  const fetched: Event = {
    type: 'fetched',
    id: 'fetch-1',
    result: { ok: true, text, content_type: 'text/xml', final_url: BASE },
  }
  possible.push(fetched)
  for (let i = 0; i < MAX_STEPS && last.run.phase.name !== 'done'; i++) {
    const event = i === 0 ? fetched : nextEvent(possible, text, random)
    last = step(random() < 0.1 ? (JSON.parse(JSON.stringify(last.run)) as Run) : last.run, event)
    lines.push(eventLine(event, last))
    verify(last)
    if (i === 0) agree(checked, last, text)
    for (const command of last.commands) possible.push(...replies(command, text, random))
  }
  const log = lines.join('\n')
  if (random() < 0.05) {
    const again = replay(log)
    if (!again.same) throw new Error(`replay differs: ${JSON.stringify(again.difference)}`)
  }
  if (checked.advice.some(({ rule }) => rule === 'syntax')) return { came_to: 'refused', log }
  return { came_to: checked.advice.length > 0 ? 'warned' : 'clean', log }
}

function begin(kind: RunKind, random: () => number) {
  const facts = {
    ...FACTS,
    kind,
    fallback: random() < 0.2 ? ({ url: 'https://backup.example.test/', method: 'POST' } as const) : null,
    leg: { ...FACTS.leg, answered: kind !== 'call' || random() < 0.5, sip: random() < 0.9 },
    speech: { ...FACTS.speech, recognizer: random() < 0.5, transcriber: random() < 0.5 },
    siprec_connectors: random() < 0.5 ? ['vault'] : [],
  }
  return { facts, step: startRun(facts) }
}

function verify({ run, commands }: StepResult): void {
  if (commands.length > MAX_COMMANDS) throw new Error(`${commands.length} commands in one step`)
  const end = commands.findIndex(command => command.type === 'done')
  if (end >= 0 && end !== commands.length - 1) throw new Error('a command after done')
  if (end >= 0 !== (run.phase.name === 'done') && commands.length > 0) throw new Error('done and phase disagree')
  const stored = JSON.stringify(run)
  if (JSON.stringify(JSON.parse(stored)) !== stored) throw new Error('the run does not survive JSON')
}

/** Throws unless the run also refuses a document with a syntax error, with the check's number and line. */
function agree(checked: ReturnType<typeof checkDocument>, { commands }: StepResult, text: string): void {
  const syntax = checked.advice.find(({ rule }) => rule === 'syntax')
  const note = commands.find(command => command.type === 'note')
  if (!syntax || text.trim() === '') return
  const same = note?.type === 'note' && note.number === syntax.number && note.line === syntax.line
  if (!same) throw new Error(`the check says ${JSON.stringify(syntax)}, the run ${JSON.stringify(note)}`)
}

/** Returns the usual answers to a command. A further fetch gets the document again, or fails. */
function replies(command: Command, text: string, random: () => number): readonly Event[] {
  if (command.type === 'start_timer') return [{ type: 'timer', id: command.id }]
  if (command.type !== 'fetch') return answersTo(command, { keys: '1#', ...(random() < 0.5 ? { speech: 'yes' } : {}) })
  const result =
    random() < 0.8
      ? ({
          ok: true,
          text,
          content_type: pick(random, ['text/xml', 'text/plain', 'audio/wav', '']),
          final_url: BASE,
        } as const)
      : ({ ok: false, number: 11205, detail: 'gone' } as const)
  return [{ type: 'fetched', id: command.id, result }]
}

function nextEvent(possible: Event[], text: string, random: () => number): Event {
  const dice = random()
  if (dice < 0.04) return { type: 'hangup' }
  if (dice < 0.08) return { type: 'update', entry: { kind: 'inline', text } }
  if (dice < 0.14) return { type: 'digit', digit: pick(random, [...'0123456789*#AD']) }
  if (dice < 0.17)
    return { type: 'refer_received', leg: pick(random, ['self', 'child-2']), target: '<sip:x@y>', headers: {} }
  if (dice < 0.2) return { type: 'timer', id: `timer-${Math.floor(random() * 9)}` }
  if (possible.length === 0) return { type: 'hangup' }
  // Events mostly come in order, sometimes out of order, sometimes twice.
  const index = random() < 0.8 ? 0 : Math.floor(random() * possible.length)
  const event = possible[index] ?? { type: 'hangup' }
  if (random() < 0.95) possible.splice(index, 1)
  return event
}
