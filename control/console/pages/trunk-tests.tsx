import { useEffect, useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask, read } from '../lib/api.ts'
import { wrongNumber } from '../lib/checks.ts'
import { useAction, useData } from '../lib/data.ts'
import { ago, words } from '../lib/format.ts'
import { onLive } from '../lib/live.ts'
import { hrefOf } from '../lib/router.ts'
import type { TrunkTestCheck, TrunkTestDetail, TrunkTestHistory } from '../lib/types.ts'
import { Button, Card, Empty, Loaded, Notice, ProblemBox, Status, Time } from '../ui/basics.tsx'
import { TextField } from '../ui/form.tsx'
import { type Column, Table } from '../ui/table.tsx'
import type { TrunkTab } from './trunk-tab.ts'

const KINDS = [
  ['config_validation', 'Check the configuration', 'Names resolve, certificates hold, targets answer.'],
  ['rtp_reachability', 'Check the media path', 'Audio is sent to the target and must come back.'],
  ['test_call', 'Place a test call', 'A real call to a number that you name; it costs nothing.'],
] as const

const historyColumns = (
  show: (run: TrunkTestHistory['data'][number]) => unknown,
): readonly Column<TrunkTestHistory['data'][number]>[] => [
  { title: 'Result', cell: run => <Status of={run.result} /> },
  { title: 'Finding', cell: run => run.finding ?? '–' },
  { title: 'Revision', cell: run => run.configuration_revision ?? '–', right: true, wide: true },
  { title: 'By', cell: run => (run.scheduled ? 'schedule' : run.run_by), wide: true },
  { title: 'When', cell: run => <Time at={run.started_at} /> },
  {
    title: '',
    right: true,
    cell: run => (
      <Button
        small
        kind="quiet"
        label={`Show the checks of the test ${ago(run.started_at)}`}
        onClick={() => void show(run)}
      >
        Checks
      </Button>
    ),
  },
]

export function TrunkTests({ trunk }: TrunkTab) {
  const history = useData<TrunkTestHistory>(`/v1/trunks/${trunk.id}/tests`)
  const [destination, setDestination] = useState('')
  const [watched, setWatched] = useState<TrunkTestDetail | null>(null)
  const action = useAction()
  const start = (kind: string) =>
    action.run(async () => {
      const body = { kind, ...(destination === '' ? {} : { destination }) }
      setWatched(await ask<TrunkTestDetail>('POST', `/v1/trunks/${trunk.id}/tests`, { body }))
      history.reload()
    })
  const show = ({ id }: { readonly id: string }) =>
    action.run(async () => setWatched(await read<TrunkTestDetail>(`/v1/trunks/${trunk.id}/tests/${id}`)))
  return (
    <>
      <Card title="Run a test">
        <TextField
          label="Number to call"
          type="tel"
          value={destination}
          onInput={value => setDestination(value.trim())}
          placeholder="+2348012345678"
          wrong={wrongNumber(destination)}
          problem={action.problem}
          at="/destination"
          hint="Only the test call needs one."
        />
        <div class="choices">
          {KINDS.map(([kind, text, hint]) => (
            <div key={kind} class="stack">
              <div>
                <Button onClick={() => void start(kind)} disabled={action.busy}>
                  {text}
                </Button>
              </div>
              <span class="muted small">{hint}</span>
            </div>
          ))}
        </div>
        <ProblemBox problem={action.problem} rest={[]} />
      </Card>
      {watched && (
        <Run
          key={watched.run.id}
          trunk_id={trunk.id}
          first={watched}
          onEnd={() => {
            history.reload()
          }}
        />
      )}
      <Loaded of={history}>
        {({ data, retention_days, scheduled_check }) => (
          <Card
            title="Earlier tests"
            hint={`Kept ${counted(retention_days, 'day')}.${scheduled_check ? ' The configuration is checked once a day.' : ''}`}
            flush
          >
            {data.length === 0 ? (
              <Empty
                title="No test yet"
                api={`curl -X POST "$STROWGER_URL/v1/trunks/${trunk.id}/tests" -H "Authorization: Bearer $STROWGER_API_KEY" \\\n  -H "Idempotency-Key: $(uuidgen)" -H "Content-Type: application/json" -d '{"kind": "config_validation"}'`}
              />
            ) : (
              <Table label="Earlier tests" rows={data} keyOf={run => run.id} columns={historyColumns(show)} />
            )}
          </Card>
        )}
      </Loaded>
    </>
  )
}

/** Shows a running test: each check as it arrives. */
function Run({ trunk_id, first, onEnd }: { trunk_id: string; first: TrunkTestDetail; onEnd: () => void }) {
  const [run, setRun] = useState(first.run)
  const path = `/v1/trunks/${trunk_id}/tests/${first.run.id}`
  const running = run.result === 'running'

  useEffect(() => {
    if (!running) return
    let here = true
    const look = () =>
      read<TrunkTestDetail>(path).then(
        answer => {
          if (!here) return
          setRun(answer.run)
          if (answer.run.result !== 'running') onEnd()
        },
        () => undefined,
      )
    const timer = setInterval(() => void look(), 1000)
    const stop = onLive(event => {
      if (event.type === 'trunk_test' && event['run_id'] === first.run.id) void look()
    })
    return () => {
      here = false
      clearInterval(timer)
      stop()
    }
  }, [running, path])

  return (
    <Card title={words(first.requested_kind)} actions={<Status of={run.result} />}>
      <ol class="timeline" aria-live="polite" data-checks>
        {run.checks.map(check => (
          <Check key={check.id} check={check} />
        ))}
      </ol>
      {run.finding && <Notice tone={run.result === 'passed' ? 'good' : 'bad'}>{run.finding}</Notice>}
      {run.call_id && (
        <p>
          <a href={hrefOf(`/calls/${run.call_id}/ladder`)}>The call that was placed</a>
          {run.call_summary ? `: ${run.call_summary}` : ''}
        </p>
      )}
    </Card>
  )
}

const TONE: Readonly<Record<string, string>> = { passed: 'good', failed: 'bad', skipped: '', waiting: 'warn' }

const Check = ({ check }: { check: TrunkTestCheck }) => (
  <li class={TONE[check.state]}>
    <strong>{words(check.id.replace(/^.*[:/]/, ''))}</strong> <Status of={check.state} />
    <div>{check.summary}</div>
    <div class="muted small">
      {[check.target_ref, check.duration_ms === null ? null : `${check.duration_ms} ms`, check.node_id]
        .filter(Boolean)
        .join(' · ')}
    </div>
  </li>
)
