import { useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type { OperatorCarrier } from '../../lib/api-types.ts'
import { useAction, useData } from '../../lib/data.ts'
import type { Problem } from '../../lib/problem.ts'
import { go, hrefOf, type PageProps } from '../../lib/router.ts'
import { Button, Card, Facts, Id, Loaded, Notice, PageHead, ProblemBox, Status, Time } from '../../ui/basics.tsx'
import { ConfirmByName, Dialog } from '../../ui/dialog.tsx'
import { Form, NumberField, SelectField, TextField } from '../../ui/form.tsx'
import { toast } from '../../ui/toast.tsx'
import { CarrierBoard } from './carrier-board.tsx'
import { CarrierForm, draftOf, requestOf } from './carrier-form.tsx'
import { CarrierState } from './carriers.tsx'

interface PartProps {
  readonly carrier: OperatorCarrier
  readonly path: string
  readonly set: (carrier: OperatorCarrier) => void
}

const BACK = { href: hrefOf('/operator/carriers'), text: 'Carriers' }

export function CarrierPage({ params }: PageProps) {
  const path = `/operator/v1/carriers/${params['id']}`
  const of = useData<OperatorCarrier>(path)
  return (
    <Loaded of={of} page={{ title: 'Carrier', back: BACK }}>
      {carrier => (
        <>
          <Head carrier={carrier} path={path} set={of.set} />
          {carrier.sandbox && (
            <Notice title="The sandbox carrier">The platform makes it at its start; it cannot be changed.</Notice>
          )}
          <CarrierBoard carrier_id={carrier.id} />
          {!carrier.sandbox && (
            <>
              <Edit key={carrier.revision} carrier={carrier} path={path} set={of.set} />
              <SignOn carrier={carrier} path={path} set={of.set} />
            </>
          )}
        </>
      )}
    </Loaded>
  )
}

function Head({ carrier, path, set }: PartProps) {
  const [removing, setRemoving] = useState(false)
  const action = useAction()
  const turn = (enabled: boolean) =>
    action.run(async () => {
      set(await ask<OperatorCarrier>('PATCH', path, { body: { enabled }, on: carrier }))
      toast(enabled ? 'It takes calls again' : 'It gets no new calls; running ones go on')
    })
  return (
    <>
      <PageHead
        title={carrier.name}
        back={BACK}
        badges={<CarrierState of={carrier} />}
        sub={<Id value={carrier.id} />}
        actions={
          !carrier.sandbox && (
            <>
              <Button disabled={action.busy} onClick={() => void turn(!carrier.enabled)}>
                {carrier.enabled ? 'Drain' : 'Enable'}
              </Button>
              <Button kind="danger" onClick={() => setRemoving(true)}>
                Remove
              </Button>
            </>
          )
        }
      />
      <ProblemBox problem={action.problem} />
      {removing && (
        <ConfirmByName
          title="Remove the carrier"
          name={carrier.name}
          verb="Remove"
          onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await ask('DELETE', path, { on: carrier })
            go('/operator/carriers')
          }}
        >
          <Notice tone="warn">It gets no new calls. Its running calls go on.</Notice>
        </ConfirmByName>
      )}
    </>
  )
}

function Edit({ carrier, path, set }: PartProps) {
  const [draft, setDraft] = useState(() => draftOf(carrier))
  const action = useAction()
  const save = () =>
    action.run(async () => {
      const body = requestOf(draft, carrier)
      set(await ask<OperatorCarrier>('PATCH', path, { body, on: carrier }))
      toast('Saved; applying')
    })
  return (
    <Card title="Targets, routes and sources">
      <CarrierForm draft={draft} set={setDraft} submit="Save and apply" action={action} onSubmit={() => void save()} />
    </Card>
  )
}

type Part = 'credentials' | 'registration'

/** What answers the carrier's challenges, and the registration with it. */
function SignOn({ carrier, path, set }: PartProps) {
  const [asked, setAsked] = useState<Part | null>(null)
  const action = useAction()
  const end = (part: Part) =>
    action.run(async () => set(await ask<OperatorCarrier>('DELETE', `${path}/${part}`, { on: carrier })))
  const { registration } = carrier
  return (
    <Card
      title="Credentials and registration"
      actions={
        <>
          <Button small onClick={() => setAsked('credentials')}>
            Set credentials
          </Button>
          <Button small onClick={() => setAsked('registration')}>
            {registration ? 'Change the registration' : 'Register'}
          </Button>
        </>
      }
    >
      <ProblemBox problem={action.problem} />
      <Facts
        rows={[
          [
            'Challenges',
            carrier.digest_username === null ? (
              'are not answered'
            ) : (
              <span class="row" key="c">
                are answered as {carrier.digest_username}
                <Button small kind="quiet" onClick={() => void end('credentials')}>
                  Remove
                </Button>
              </span>
            ),
          ],
          [
            'Registration',
            registration === null ? (
              'none'
            ) : (
              <span class="row" key="r">
                <Status of={registration.state} /> {registration.username} at {registration.registrar}
                <Button small kind="quiet" onClick={() => void end('registration')}>
                  End
                </Button>
              </span>
            ),
          ],
          registration?.detail ? ['Last answer', registration.detail] : null,
          registration?.expires_at ? ['Ends', <Time key="e" at={registration.expires_at} />] : null,
        ]}
      />
      {asked && <SignOnForm part={asked} carrier={carrier} path={path} set={set} onClose={() => setAsked(null)} />}
    </Card>
  )
}

function SignOnForm({ part, carrier, path, set, onClose }: PartProps & { part: Part; onClose: () => void }) {
  const [registrar, setRegistrar] = useState(carrier.registration?.registrar ?? '')
  const [username, setUsername] = useState(carrier.registration?.username ?? carrier.digest_username ?? '')
  const [password, setPassword] = useState('')
  const [transport, setTransport] = useState<string>(carrier.registration?.transport ?? 'udp')
  const [expires_seconds, setExpires] = useState<number | null>(carrier.registration?.expires_seconds ?? 3600)
  const action = useAction()
  const registers = part === 'registration'
  const save = async () => {
    const more = registers ? { registrar, transport, ...(expires_seconds === null ? {} : { expires_seconds }) } : {}
    const done = await action.run(async () =>
      set(
        await ask<OperatorCarrier>('PUT', `${path}/${part}`, {
          body: { username, password, ...more },
          on: carrier,
        }),
      ),
    )
    if (done) onClose()
  }
  const common = { problem: action.problem }
  return (
    <Dialog title={registers ? 'Register with the carrier' : 'Credentials for the carrier'} onClose={onClose}>
      <Form
        onSubmit={() => void save()}
        submit="Save"
        busy={action.busy}
        problem={action.problem}
        fields={['/registrar', '/username', '/password', '/expires_seconds', '/transport']}
      >
        {registers && (
          <TextField
            label="Registrar"
            placeholder="sip:sip.carrier.example"
            value={registrar}
            onInput={setRegistrar}
            at="/registrar"
            required
            {...common}
          />
        )}
        <TextField label="User" value={username} onInput={setUsername} at="/username" required {...common} />
        <TextField
          label="Password"
          type="password"
          hint="It is never shown again."
          value={password}
          onInput={setPassword}
          at="/password"
          required
          {...common}
        />
        {registers && (
          <Lasting
            transport={transport}
            onTransport={setTransport}
            seconds={expires_seconds}
            onSeconds={setExpires}
            problem={action.problem}
          />
        )}
      </Form>
    </Dialog>
  )
}

interface LastingProps {
  readonly transport: string
  readonly onTransport: (transport: string) => void
  readonly seconds: number | null
  readonly onSeconds: (seconds: number | null) => void
  readonly problem: Problem | null
}

const Lasting = ({ transport, onTransport, seconds, onSeconds, problem }: LastingProps) => (
  <div class="grid-2">
    <SelectField
      label="Transport"
      value={transport}
      onInput={onTransport}
      at="/transport"
      options={['udp', 'tcp', 'tls'].map(value => ({ value, text: value.toUpperCase() }))}
      problem={problem}
    />
    <NumberField
      label="Lasts, seconds"
      min={60}
      value={seconds}
      onInput={onSeconds}
      at="/expires_seconds"
      problem={problem}
    />
  </div>
)
