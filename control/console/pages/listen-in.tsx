import { useEffect, useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { Listening } from '../lib/api-types.ts'
import { listenAt } from '../lib/listening.ts'
import { type Problem, problemOf } from '../lib/problem.ts'
import { Button, Notice, ProblemBox } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'

interface Props {
  readonly call: { readonly id: string; readonly from: string; readonly to: string }
  readonly onClose: () => void
}

const TOLD = {
  tone: 'The parties hear a tone, now and every 15 seconds.',
  spoken: 'The parties are told that somebody listens.',
} as const

/** Lets a person hear a live call until the dialog is closed. Nothing of the person is heard in the call. */
export function ListenIn({ call, onClose }: Props) {
  const [made, setMade] = useState<Listening | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [state, setState] = useState('Connecting…')
  useEffect(() => {
    let here = true
    let stop = (): void => undefined
    ask<Listening>('POST', `/v1/live-calls/${call.id}/listen`).then(
      listening => {
        if (!here) return
        setMade(listening)
        const opened = listenAt(listening.websocket_path, {
          heard: () => setState('You hear both sides.'),
          over: why => setState(why === '' ? 'The connection has ended.' : `Ended: ${why}.`),
        })
        stop = opened.stop
      },
      error => here && setProblem(problemOf(error)),
    )
    return () => {
      here = false
      stop()
    }
  }, [call.id])
  return (
    <Dialog title={`Listening to ${call.from} and ${call.to}`} onClose={onClose}>
      <div class="stack">
        <ProblemBox problem={problem} />
        {made && <Notice tone="note">{TOLD[made.notice]} The audit trail keeps that you listened.</Notice>}
        {!problem && <output data-listening>{state}</output>}
        <Button onClick={onClose}>Stop listening</Button>
      </div>
    </Dialog>
  )
}
