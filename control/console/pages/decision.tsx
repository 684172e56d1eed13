import type { CallDecision } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { words } from '../lib/format.ts'
import { Card, CodeBox, Empty, Loaded } from '../ui/basics.tsx'
import { Icon } from '../ui/icons.tsx'
import { Attempts } from './attempts.tsx'

interface Finding {
  readonly check?: string | number
  readonly result?: string
  readonly sentence?: string
  readonly name?: string
  readonly limit?: unknown
  readonly used?: unknown
  readonly reason?: string | null
}

/** The checks of an admission, in order, each with its result. */
export const Trace = ({ findings }: { findings: readonly Finding[] }) => (
  <ol class="trace">
    {findings.map((finding, index) => {
      const passed = finding.result === 'passed' || finding.result === 'pass' || finding.result === 'ok'
      const skipped = finding.result === 'skipped' || finding.result === 'not_applicable'
      return (
        <li key={index}>
          <span class={passed ? 'yes' : skipped ? 'muted' : 'no'}>
            <Icon name={passed ? 'check' : skipped ? 'back' : 'cross'} />
          </span>
          <div>
            <strong>{words(String(finding.name ?? finding.check ?? `Check ${index + 1}`))}</strong>{' '}
            <span class="muted">{words(finding.result ?? '')}</span>
            <div>{finding.sentence}</div>
          </div>
        </li>
      )
    })}
  </ol>
)

export function Decision({ call_id, live }: { call_id: string; live: boolean }) {
  const of = useData<CallDecision>(`/v1/calls/${call_id}/decision`, live ? { poll_ms: 5000 } : {})
  return (
    <Loaded of={of}>
      {answer => {
        const checks = answer.decision?.['checks'] as readonly Finding[] | undefined
        return (
          <>
            <Card title="In words">
              <ul class="prose stack">
                {answer.words
                  .filter(line => !line.startsWith('Check '))
                  .map(line => (
                    <li key={line}>{line}</li>
                  ))}
              </ul>
            </Card>
            {checks && checks.length > 0 && (
              <Card title="Checks" hint="In the order in which they were asked; the first that fails refuses.">
                <Trace findings={checks} />
              </Card>
            )}
            <Attempts attempts={answer.attempts} />
            {answer.decision ? (
              <Card title="As it was kept">
                <details>
                  <summary>The whole decision</summary>
                  <CodeBox
                    text={JSON.stringify({ decision: answer.decision, price: answer.price }, null, 2)}
                    what="the decision"
                  />
                </details>
              </Card>
            ) : (
              <Card flush>
                <Empty title="No decision was needed">
                  Inbound calls to your numbers are not admitted by outbound rules.
                </Empty>
              </Card>
            )}
          </>
        )
      }}
    </Loaded>
  )
}
