import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import { wrongUrl } from '../lib/checks.ts'
import { type Action, useAction, useData } from '../lib/data.ts'
import { count } from '../lib/format.ts'
import { go, hrefOf } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { Application, ListOf } from '../lib/types.ts'
import { RevisionBadge } from '../ui/apply.tsx'
import { Button, Card, Empty, LinkButton, Loaded, PageHead, Time } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Form, SelectField, TextField } from '../ui/form.tsx'
import { type Column, Table } from '../ui/table.tsx'

export interface ApplicationForm {
  readonly name: string
  readonly voice_url: string
  readonly voice_method: 'GET' | 'POST'
  readonly fallback_url: string
  readonly status_callback_url: string
}

const EMPTY: ApplicationForm = {
  name: '',
  voice_url: '',
  voice_method: 'POST',
  fallback_url: '',
  status_callback_url: '',
}

export const bodyOf = (form: ApplicationForm) => ({
  name: form.name.trim(),
  voice_url: form.voice_url.trim(),
  voice_method: form.voice_method,
  fallback_url: form.fallback_url.trim() === '' ? null : form.fallback_url.trim(),
  status_callback_url: form.status_callback_url.trim() === '' ? null : form.status_callback_url.trim(),
})

interface FieldsProps {
  /** The form was asked for, and takes the focus. */
  readonly asked?: boolean
  readonly form: ApplicationForm
  readonly set: (changes: Partial<ApplicationForm>) => void
  readonly action: Action
}

export function ApplicationFields({ asked = false, form, set, action }: FieldsProps) {
  const at = (pointer: string) => ({ problem: action.problem, at: pointer })
  return (
    <>
      <TextField
        label="Name"
        value={form.name}
        onInput={name => set({ name })}
        required
        autoFocus={asked}
        {...at('/name')}
      />
      <div class="grid-2">
        <TextField
          label="Document address"
          mono
          inputMode="url"
          placeholder="https://app.example.com/voice"
          value={form.voice_url}
          onInput={voice_url => set({ voice_url })}
          wrong={wrongUrl(form.voice_url)}
          hint="The platform asks this address what to do when a call comes in."
          required
          {...at('/voice_url')}
        />
        <SelectField
          label="Method"
          value={form.voice_method}
          onInput={value => set({ voice_method: value as 'GET' | 'POST' })}
          options={[
            { value: 'POST', text: 'POST' },
            { value: 'GET', text: 'GET' },
          ]}
          {...at('/voice_method')}
        />
      </div>
      <TextField
        label="Fallback address"
        mono
        value={form.fallback_url}
        onInput={fallback_url => set({ fallback_url })}
        wrong={wrongUrl(form.fallback_url)}
        hint="Used when the first address does not answer."
        {...at('/fallback_url')}
      />
      <TextField
        label="Status callback"
        mono
        value={form.status_callback_url}
        onInput={status_callback_url => set({ status_callback_url })}
        wrong={wrongUrl(form.status_callback_url)}
        hint="Told when a call ends."
        {...at('/status_callback_url')}
      />
    </>
  )
}

const APPLICATION_COLUMNS: readonly Column<Application>[] = [
  { title: 'Name', cell: row => row.name },
  {
    title: 'State',
    cell: row => <RevisionBadge desired={row.desired_revision} effective={row.effective_revision} />,
  },
  { title: 'Document', cell: row => <span class="mono">{row.voice_url}</span>, wide: true },
  { title: 'Numbers', cell: row => count(row.numbers_pointed), right: true },
  { title: 'Changed', cell: row => <Time at={row.updated_at} />, wide: true },
]

export function Applications() {
  const applications = useData<ListOf<Application>>('/v1/voice/applications', { poll_ms: 10_000 })
  const [adding, setAdding] = useState<ApplicationForm | null>(null)
  const action = useAction()
  const add = () =>
    action.run(async () => {
      if (!adding) return
      const made = await ask<Application>('POST', '/v1/voice/applications', { body: bodyOf(adding), once: true })
      go(`/applications/${made.id}`)
    })
  const create = may('service_configuration:write') && (
    <Button kind="main-one" icon="plus" onClick={() => setAdding(EMPTY)}>
      Create an application
    </Button>
  )
  return (
    <>
      <PageHead
        title="Voice applications"
        sub="An application is a web address that the platform asks what to do with a call: play, gather, dial, record."
        actions={
          <>
            <LinkButton href={hrefOf('/editor')}>Markup editor</LinkButton>
            {create}
          </>
        }
      />
      <Loaded of={applications}>
        {({ data }) => (
          <Card flush>
            {data.length === 0 ? (
              <Empty
                title="No application yet"
                action={create}
                api={`curl -X POST "$STROWGER_URL/v1/voice/applications" -H "Authorization: Bearer $STROWGER_API_KEY" \\\n  -H "Idempotency-Key: $(uuidgen)" -H "Content-Type: application/json" \\\n  -d '{"name": "Reception", "voice_url": "https://app.example.com/voice", "voice_method": "POST"}'`}
              >
                Try a document in the markup editor first; it runs against the sandbox at once.
              </Empty>
            ) : (
              <Table
                label="Voice applications"
                rows={data}
                keyOf={row => row.id}
                hrefOf={row => hrefOf(`/applications/${row.id}`)}
                columns={APPLICATION_COLUMNS}
              />
            )}
          </Card>
        )}
      </Loaded>
      {adding && (
        <Dialog title="Create an application" onClose={() => setAdding(null)}>
          <Form
            onSubmit={() => void add()}
            submit="Create"
            busy={action.busy}
            problem={action.problem}
            fields={['/name', '/voice_url', '/voice_method', '/fallback_url', '/status_callback_url']}
          >
            <ApplicationFields
              asked
              form={adding}
              set={changes => setAdding({ ...adding, ...changes })}
              action={action}
            />
          </Form>
        </Dialog>
      )}
    </>
  )
}
