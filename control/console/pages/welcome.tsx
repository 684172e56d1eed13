import { useData } from '../lib/data.ts'
import { hrefOf } from '../lib/router.ts'
import { inSandbox, may } from '../lib/session.ts'
import type { CallSummary, ListOf, PhoneNumber, TrunkSummary } from '../lib/types.ts'
import { callFromPhone } from '../softphone/open.ts'
import { Button, Card, LinkButton, NoRows, PageHead, ProblemBox } from '../ui/basics.tsx'
import { Icon } from '../ui/icons.tsx'

/** Answers, says the called number, and echoes. */
const SANDBOX_ECHO = '+2348030000001'

/** The steps from an empty project to a first call. The page polls the API to detect which ones are done. */
export function Welcome() {
  const numbers = useData<ListOf<PhoneNumber>>('/v1/numbers?limit=1', { poll_ms: 5000 })
  const calls = useData<ListOf<CallSummary>>('/v1/calls?limit=1', { poll_ms: 3000 })
  const trunks = useData<ListOf<TrunkSummary>>('/v1/trunks', { poll_ms: 5000 })
  const has = (list: { data?: ListOf<unknown> | undefined }) => (list.data?.data.length ?? 0) > 0
  const last = calls.data?.data[0]
  return (
    <>
      <PageHead
        title="Your first call"
        sub={
          inSandbox.value
            ? 'Three steps, about a minute. Nothing to install; nothing is billed in the sandbox.'
            : 'Three steps, about a minute. Nothing to install. This project is live: its calls are billed.'
        }
      />
      <ProblemBox problem={numbers.problem ?? calls.problem ?? trunks.problem} />
      <Step number={1} title="Have a number" done={has(numbers)}>
        {has(numbers) ? (
          <p>
            Calls show <strong>{numbers.data?.data[0]?.e164}</strong> as the caller.
          </p>
        ) : (
          <NoRows of={numbers}>
            <LinkButton href={hrefOf('/numbers/order')} kind="main-one">
              Order a number
            </LinkButton>
          </NoRows>
        )}
      </Step>
      <Step
        number={2}
        title={inSandbox.value ? 'Call the sandbox from this page' : 'Call from this page'}
        done={has(calls)}
      >
        <AboutTheCall />
        {may('service_configuration:write') && <WaysToCall ready={has(numbers)} />}
        {last && <LastCall id={last.id} />}
      </Step>
      <Step number={3} title="Connect your PBX" done={has(trunks)}>
        <p>A trunk takes a name and how the PBX proves who it is. Its configuration is then ready to paste.</p>
        {may('service_configuration:write') && (
          <div>
            <LinkButton href={hrefOf('/trunks/new')} kind={has(trunks) ? undefined : 'main-one'}>
              Create a trunk
            </LinkButton>
          </div>
        )}
      </Step>
    </>
  )
}

const WaysToCall = ({ ready }: { ready: boolean }) => (
  <div class="row">
    <Button
      kind="main-one"
      icon="phone"
      onClick={() => callFromPhone(inSandbox.value ? SANDBOX_ECHO : '')}
      disabled={!ready}
    >
      {inSandbox.value ? `Call ${SANDBOX_ECHO}` : 'Open the telephone'}
    </Button>
    <LinkButton href={hrefOf('/editor')}>Or run a script</LinkButton>
  </div>
)

const LastCall = ({ id }: { id: string }) => (
  <p>
    The last call: <a href={hrefOf(`/calls/${id}/ladder`)}>its SIP ladder</a>,{' '}
    <a href={hrefOf(`/calls/${id}/decision`)}>how it was decided</a>,{' '}
    <a href={hrefOf(`/calls/${id}/media`)}>how it sounded</a>.
  </p>
)

const AboutTheCall = () => (
  <p>
    Your browser becomes the telephone; allow it the microphone.{' '}
    {inSandbox.value
      ? 'Numbers of the sandbox that end in 0001 say the number that was called and then echo what you say.'
      : 'A carrier takes the call, and it is billed by the rates of your project.'}
  </p>
)

const Step = ({
  number,
  title,
  done,
  children,
}: {
  number: number
  title: string
  done: boolean
  children: preact.ComponentChildren
}) => (
  <Card
    title={
      <>
        {number}. {title}
      </>
    }
    actions={
      done && (
        <span class="badge good plain">
          <Icon name="check" /> Done
        </span>
      )
    }
  >
    <div class="stack">{children}</div>
  </Card>
)
