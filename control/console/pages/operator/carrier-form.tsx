import type { CarrierRequest, OperatorCarrier } from '../../lib/api-types.ts'
import type { Action } from '../../lib/data.ts'
import { CODECS } from '../../lib/trunk-choices.ts'
import { AreaField, Chips, Form, SelectField, TextField } from '../../ui/form.tsx'

type Codec = OperatorCarrier['codecs'][number]

/** A carrier as its form has it: one target, source and route a line. */
export interface Draft {
  readonly name: string
  readonly targets: string
  readonly sources: string
  readonly routes: string
  readonly codecs: readonly Codec[]
  readonly redirects: OperatorCarrier['redirects']
}

export const emptyDraft: Draft = {
  name: '',
  targets: '',
  sources: '',
  routes: 'any 0',
  codecs: ['PCMU', 'PCMA'],
  redirects: 'off',
}

export const draftOf = (of: OperatorCarrier): Draft => ({
  name: of.name,
  targets: of.targets
    .map(({ sip_uri, transport, priority, weight }) => `${sip_uri} ${transport} ${priority} ${weight}`)
    .join('\n'),
  sources: of.sources.join('\n'),
  routes: of.routes.map(({ prefix, cost_minor, priority }) => `${prefix} ${cost_minor / 100} ${priority}`).join('\n'),
  codecs: of.codecs,
  redirects: of.redirects,
})

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

const wordsOf = (line: string): string[] => line.split(/\s+/)

/** A number as the API wants it. Text that is none is passed on, so that the API names the field. */
const numberOf = (text: string | undefined, scale = 1): { readonly value?: number } => {
  if (text === undefined) return {}
  return { value: Math.round(Number(text) * scale) }
}

/**
 * The request for a draft. `known` is the carrier that it changes: fields of a target that the form does not show, such
 * as a pinned certificate, stay with the target's address.
 */
export function requestOf(draft: Draft, known?: OperatorCarrier): CarrierRequest {
  const targets = linesOf(draft.targets).map(line => {
    const [sip_uri = '', transport, priority, weight] = wordsOf(line)
    const before = known?.targets.find(target => target.sip_uri === sip_uri)
    return {
      sip_uri,
      ...(transport === undefined ? {} : { transport: transport as 'udp' | 'tcp' | 'tls' }),
      ...named('priority', numberOf(priority)),
      ...named('weight', numberOf(weight)),
      ...(before ? { tls_verification: before.tls_verification } : {}),
      ...(before?.tls_fingerprint ? { tls_fingerprint: before.tls_fingerprint } : {}),
    }
  })
  const routes = linesOf(draft.routes).map(line => {
    const [prefix = '', cost, priority] = wordsOf(line)
    return { prefix, ...named('cost_minor', numberOf(cost, 100)), ...named('priority', numberOf(priority)) }
  })
  const { name, codecs, redirects } = draft
  return { name: name.trim(), targets, sources: linesOf(draft.sources), routes, codecs, redirects }
}

const named = <Name extends string>(name: Name, { value }: { readonly value?: number }) =>
  value === undefined ? {} : ({ [name]: value } as Record<Name, number>)

interface Props {
  readonly draft: Draft
  readonly set: (draft: Draft) => void
  readonly submit: string
  readonly action: Action
  readonly onSubmit: () => void
}

/** The lists of a carrier, of which the form has a line for each item. */
const LISTS = [
  {
    name: 'targets',
    label: 'Targets',
    hint: 'Where its calls go, one a line: SIP URI, then, where they differ, transport, priority and weight.',
    placeholder: 'sip:198.51.100.7 udp 1 100',
  },
  {
    name: 'routes',
    label: 'Routes',
    hint: 'One a line: prefix or any, what it costs in ₦ a minute, priority.',
    placeholder: '+234 4.5 10\nany 12 20',
  },
  {
    name: 'sources',
    label: 'Sources',
    hint: 'Addresses from which its calls arrive, one a line. Calls from them need no credential.',
    placeholder: '198.51.100.0/28',
  },
] as const

export const CarrierForm = ({ draft, set, submit, action, onSubmit }: Props) => {
  const { problem } = action
  return (
    <Form
      onSubmit={onSubmit}
      submit={submit}
      busy={action.busy}
      problem={problem}
      fields={['/name', '/targets', '/sources', '/routes', '/codecs']}
    >
      <TextField
        label="Name"
        value={draft.name}
        onInput={name => set({ ...draft, name })}
        problem={problem}
        at="/name"
        required
      />
      {LISTS.map(({ name, ...texts }) => (
        <AreaField
          key={name}
          {...texts}
          mono
          rows={3}
          value={draft[name]}
          onInput={value => set({ ...draft, [name]: value })}
          problem={problem}
          at={`/${name}`}
        />
      ))}
      <Chips legend="Codecs" values={draft.codecs} onInput={codecs => set({ ...draft, codecs })} options={CODECS} />
      <SelectField
        label="Redirects (3xx) are followed"
        value={draft.redirects}
        onInput={redirects => set({ ...draft, redirects: redirects as Draft['redirects'] })}
        options={[
          { value: 'off', text: 'Not at all' },
          { value: 'same_host', text: 'To the same host' },
          { value: 'listed', text: 'To the targets of the list' },
        ]}
      />
    </Form>
  )
}
