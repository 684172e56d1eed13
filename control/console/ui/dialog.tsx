import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import type { Problem } from '../lib/problem.ts'
import { Button, CopyButton, Notice } from './basics.tsx'
import { Form, TextField } from './form.tsx'
import { Icon } from './icons.tsx'
import { toast } from './toast.tsx'

/** A modal dialog; the browser keeps the focus inside, and Escape closes it. */
export function Dialog({
  title,
  onClose,
  children,
  wide,
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
  wide?: boolean
}) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog ref={ref} class={wide ? 'wide' : ''} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </header>
      <div class="body">{children}</div>
    </dialog>
  )
}

interface Asked {
  readonly title: string
  /** What the button says. */
  readonly verb: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** Asks before an action, which closes the dialog when it succeeds; its problem is shown here. */
export function Confirm({
  onConfirm,
  given,
  ...of
}: Asked & {
  readonly onConfirm: () => Promise<unknown>
  /** What the person has to give first: fields by their pointers, and whether something is missing. */
  readonly given?: {
    readonly fields: readonly string[]
    readonly missing: boolean
    readonly inputs: (problem: Problem | null) => ComponentChildren
  }
}) {
  const action = useAction()
  const submit = async () => {
    if (await action.run(onConfirm)) of.onClose()
  }
  return (
    <Dialog title={of.title} onClose={of.onClose}>
      <div class="stack">{of.children}</div>
      <Form
        onSubmit={() => void submit()}
        submit={of.verb}
        busy={action.busy}
        problem={action.problem}
        fields={given?.fields ?? []}
        danger
        disabled={given?.missing === true}
        more={<Button onClick={of.onClose}>Cancel</Button>}
      >
        {given?.inputs(action.problem) ?? null}
      </Form>
    </Dialog>
  )
}

/** Asks before a call in progress is ended. */
export const ConfirmHangUp = ({
  call,
  onClose,
  onAsked,
}: {
  call: { readonly id: string; readonly from: string; readonly to: string }
  onClose: () => void
  onAsked?: () => void
}) => (
  <Confirm
    title="Hang up this call"
    verb="Hang up now"
    onClose={onClose}
    onConfirm={async () => {
      await ask('POST', `/v1/live-calls/${call.id}/hang-up`)
      toast('The call is being ended')
      onAsked?.()
    }}
  >
    <p>
      {call.from} and {call.to} are cut off at once.
    </p>
  </Confirm>
)

/** Asks for the reason of an action, which the audit trail keeps. */
export function ConfirmWithReason({
  onConfirm,
  ...of
}: Asked & { readonly onConfirm: (reason: string) => Promise<unknown> }) {
  const [reason, setReason] = useState('')
  const inputs = (problem: Problem | null) => (
    <TextField label="Reason" value={reason} onInput={setReason} problem={problem} at="/reason" autoFocus />
  )
  const given = { fields: ['/reason'], missing: reason.trim() === '', inputs }
  return <Confirm {...of} onConfirm={() => onConfirm(reason)} given={given} />
}

/** Requires the user to type the name before an action that cannot be undone. */
export function ConfirmByName({
  name,
  onConfirm,
  withReason = false,
  ...of
}: Asked & {
  readonly name: string
  readonly onConfirm: (given: { readonly confirm_name: string; readonly reason: string }) => Promise<unknown>
  readonly withReason?: boolean
}) {
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const inputs = (problem: Problem | null) => (
    <>
      {withReason && <TextField label="Reason" value={reason} onInput={setReason} problem={problem} at="/reason" />}
      <TextField
        label={`Type “${name}” to confirm`}
        value={typed}
        onInput={setTyped}
        problem={problem}
        at="/confirm_name"
        autoFocus
      />
    </>
  )
  const missing = typed !== name || (withReason && reason.trim() === '')
  return (
    <Confirm
      {...of}
      onConfirm={() => onConfirm({ confirm_name: typed, reason })}
      given={{ fields: ['/confirm_name', '/reason'], missing, inputs }}
    />
  )
}

/** A secret that the API returns only once. */
export const SecretOnce = ({ value, what, hint }: { value: string; what: string; hint?: string }) => (
  <div class="stack">
    <Notice tone="warn">{hint ?? `This is the only time that ${what} is shown. Copy it now.`}</Notice>
    <div class="secret">
      <code data-secret>{value}</code>
      <CopyButton text={value} what={what} />
    </div>
  </div>
)
