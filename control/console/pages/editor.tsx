import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import { ask } from '../lib/api.ts'
import type { MarkupAdvice, MarkupCheck, PlacedTestCall } from '../lib/api-types.ts'
import { wrongNumber, wrongUrl } from '../lib/checks.ts'
import { useAction, useData } from '../lib/data.ts'
import { EXAMPLES } from '../lib/examples.ts'
import { clockTime, words } from '../lib/format.ts'
import { ELEMENTS } from '../lib/markup-elements.ts'
import { hrefOf, query } from '../lib/router.ts'
import { hasRole, inSandbox } from '../lib/session.ts'
import type { Call, ListOf, PhoneNumber } from '../lib/types.ts'
import { Badge, Button, CallStatus, Card, Empty, PageHead, ProblemBox } from '../ui/basics.tsx'
import { CodeEditor } from '../ui/code-editor.tsx'
import { Form, SelectField, TextField } from '../ui/form.tsx'

const KEY = 'strowger-markup'
const LINT_MS = 350
const NONE: readonly MarkupAdvice[] = []
const EXAMPLE_OPTIONS = Object.keys(EXAMPLES).map(name => ({ value: name, text: name }))
const LAST_RUN = 'The last run'
/** The document that a call ran last from this page. */
const lastRun = signal<string | null>(null)

export function EditorPage() {
  const url = query.value.get('url')
  const [markup, setMarkup] = useState(() => sessionStorage.getItem(KEY) ?? EXAMPLES['Greeting'] ?? '')
  const change = (text: string) => {
    sessionStorage.setItem(KEY, text)
    setMarkup(text)
  }
  return (
    <>
      <PageHead
        title={url ? 'Run an application' : 'Markup editor'}
        back={{ href: hrefOf('/applications'), text: 'Voice applications' }}
        sub={
          url
            ? `A call ${inSandbox.value ? 'to a number of the sandbox ' : ''}fetches the document and runs it.`
            : `Checked while you type by the same rules that calls use; run in a real call${
                inSandbox.value ? ' to a number of the sandbox' : ''
              }.`
        }
      />
      <div class="columns">
        {url === null && <Editor markup={markup} onInput={change} />}
        <Run markup={markup} url={url} />
      </div>
    </>
  )
}

/** What the check says in a word. */
function Verdict({ advice }: { advice: readonly MarkupAdvice[] }) {
  if (advice.length === 0) return <Badge tone="good">No finding</Badge>
  const errors = advice.filter(item => item.level === 'error').length
  return (
    <Badge tone={errors > 0 ? 'bad' : 'warn'}>
      {errors > 0 ? counted(errors, 'error') : counted(advice.length, 'remark')}
    </Badge>
  )
}

function Editor({ markup, onInput }: { markup: string; onInput: (text: string) => void }) {
  const [advice, setAdvice] = useState<readonly MarkupAdvice[] | null>(null)
  const [place, setPlace] = useState<{ line: number; column: number } | null>(null)
  const [against, setAgainst] = useState<string | null>(null)
  const originals: Readonly<Record<string, string | undefined>> = {
    ...(lastRun.value === null ? {} : { [LAST_RUN]: lastRun.value }),
    ...EXAMPLES,
  }
  const names = Object.keys(originals)
  const action = useAction()
  const { run } = action
  useEffect(() => {
    const timer = setTimeout(
      () =>
        void run(async () => {
          const answer = await ask<MarkupCheck>('POST', '/v1/markup/check', { body: { markup } })
          setAdvice(answer.advice)
        }),
      LINT_MS,
    )
    return () => clearTimeout(timer)
  }, [markup, run])

  return (
    <Card title="Document" actions={advice && <Verdict advice={advice} />}>
      <div class="filters">
        <SelectField
          label="Begin from an example"
          value=""
          onInput={name => name !== '' && onInput(EXAMPLES[name] ?? '')}
          options={[{ value: '', text: 'Choose' }, ...EXAMPLE_OPTIONS]}
        />
        <SelectField
          label="Show what differs from"
          value={against === null ? '' : (names.find(name => originals[name] === against) ?? '')}
          onInput={name => setAgainst(originals[name] ?? null)}
          options={[{ value: '', text: 'Nothing' }, ...names.map(name => ({ value: name, text: name }))]}
        />
      </div>
      <CodeEditor
        label="Markup document"
        value={markup}
        onInput={onInput}
        elements={ELEMENTS}
        remarks={advice ?? NONE}
        against={against}
        place={place}
      />
      <ProblemBox problem={action.problem} />
      {advice && advice.length > 0 && (
        <ul class="timeline" aria-label="What the check found" aria-live="polite" data-advice>
          {advice.map(item => (
            <li key={`${item.line}:${item.column}${item.rule}`} class={item.level === 'error' ? 'bad' : 'warn'}>
              <Button small kind="quiet" onClick={() => setPlace({ line: item.line, column: item.column })}>
                Line {item.line}, column {item.column}
              </Button>
              <div>{item.detail}</div>
              {item.suggestion && <div class="muted small">{item.suggestion}</div>}
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

function Run({ markup, url }: { markup: string; url: string | null }) {
  const numbers = useData<ListOf<PhoneNumber>>('/v1/numbers?limit=50')
  const [to, setTo] = useState(inSandbox.peek() ? '+2348030000001' : '')
  const [from, setFrom] = useState('')
  const [placed, setPlaced] = useState<string | null>(null)
  const action = useAction()
  const caller = from || (numbers.data?.data[0]?.e164 ?? '')
  const place = () =>
    action.run(async () => {
      const body = { to, from: caller, ...(url === null ? { markup } : { url }) }
      setPlaced((await ask<PlacedTestCall>('POST', '/test-calls', { body, once: true })).call_id)
      if (url === null) lastRun.value = markup
    })
  if (!hasRole('org:admin', 'org:engineer')) return null
  return (
    <Card
      title="Run it"
      hint={
        url ??
        (inSandbox.value
          ? 'Numbers that end in 0001 answer and echo, 0004 sends digits, 0002 is busy.'
          : 'This project is live: a carrier takes the call, and it is billed.')
      }
    >
      <ProblemBox problem={numbers.problem} />
      <Form
        onSubmit={() => void place()}
        submit="Place the call"
        busy={action.busy}
        disabled={caller === '' && numbers.loading}
        problem={action.problem}
        fields={['/to', '/from', '/markup', '/url']}
      >
        <div class="grid-2">
          <TextField
            label="Call"
            type="tel"
            value={to}
            onInput={value => setTo(value.trim())}
            wrong={wrongNumber(to) ?? (url ? wrongUrl(url) : null)}
            problem={action.problem}
            at="/to"
            required
          />
          <SelectField
            label="From"
            value={caller}
            onInput={setFrom}
            options={(numbers.data?.data ?? []).map(({ e164 }) => ({ value: e164, text: e164 }))}
            problem={action.problem}
            at="/from"
          />
        </div>
      </Form>
      {placed && <Progress call_id={placed} />}
    </Card>
  )
}

function Progress({ call_id }: { call_id: string }) {
  const of = useData<Call>(`/v1/calls/${call_id}`, { poll_ms: 800 })
  const call = of.data
  if (!call) return <output class="loading">The call is being placed…</output>
  return (
    <div class="stack" data-run>
      <div class="row">
        <CallStatus call={call} />
        <a href={hrefOf(`/calls/${call_id}/script`)}>The call's page</a>
      </div>
      {call.events.length === 0 ? (
        <Empty
          title={call.ended_at === null ? 'Waiting for the first step' : 'The call ended before a step of its script'}
        />
      ) : (
        <ol class="timeline">
          {call.events.slice(-12).map((event, index) => (
            <li key={index}>
              <time dateTime={event.at}>{clockTime(event.at)}</time> {words(event.kind)}{' '}
              <span class="muted">
                {['verb', 'status', 'message', 'detail', 'text']
                  .map(name => event.detail[name])
                  .filter(value => typeof value === 'string')
                  .join(' ')}
              </span>
            </li>
          ))}
        </ol>
      )}
    </div>
  )
}
