import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { localTimeOf, localTimeText } from '../lib/local-time.ts'
import { messagesAt, messagesElsewhere, type Problem } from '../lib/problem.ts'
import { Button, ProblemBox } from './basics.tsx'

interface Common {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly problem?: Problem | null
  /** The field's place in the request body, such as `/name`. */
  readonly at?: string
  /** The error that the page itself detects. */
  readonly wrong?: string | null
}

/** A labelled input. Screen readers announce its hint and its error with it. */
function Field({
  label,
  hint,
  problem,
  at,
  wrong,
  children,
}: Common & {
  children: (props: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: 'true' }) => ComponentChildren
}) {
  const id = useId()
  const message = wrong ?? (at === undefined ? null : messagesAt(problem ?? null, at))
  const described = [hint ? `${id}-hint` : '', message ? `${id}-wrong` : ''].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        ...(described === '' ? {} : { 'aria-describedby': described }),
        ...(message ? { 'aria-invalid': 'true' as const } : {}),
      })}
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {message && (
        <span class="wrong" id={`${id}-wrong`}>
          {message}
        </span>
      )}
    </div>
  )
}

interface TextProps extends Common {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly type?: 'text' | 'email' | 'password' | 'tel' | 'search'
  readonly autoComplete?: string
  readonly placeholder?: string
  readonly mono?: boolean
  readonly required?: boolean
  readonly autoFocus?: boolean
  readonly inputMode?: 'numeric' | 'tel' | 'text' | 'url'
}

export const TextField = ({ value, onInput, type = 'text', mono, autoFocus, ...rest }: TextProps) => (
  <Field {...rest}>
    {props => (
      <input
        {...props}
        type={type as 'text'}
        class={mono ? 'mono' : ''}
        value={value}
        required={rest.required}
        placeholder={rest.placeholder}
        autocomplete={(rest.autoComplete ?? 'off') as 'off'}
        inputMode={rest.inputMode}
        ref={autoFocus ? focusOnce : undefined}
        onInput={event => onInput(event.currentTarget.value)}
      />
    )}
  </Field>
)

/** An input for the first digits of numbers. */
export const PrefixField = ({ value, onInput, hint }: Pick<TextProps, 'value' | 'onInput' | 'hint'>) => (
  <TextField
    label="Begins with"
    type="tel"
    placeholder="+234"
    value={value}
    onInput={text => onInput(text.trim())}
    hint={hint}
  />
)

/**
 * An input for a date and time in the organization's time zone. A field of the browser's own would have the form and
 * the language of the browser. Tells of a change when the field is left or Enter is pressed.
 */
export function TimeField({ value, onInput, ...rest }: Common & { value: string; onInput: (local: string) => void }) {
  const [text, setText] = useState(localTimeText(value))
  // A saved filter or a button may set it too.
  useEffect(() => setText(localTimeText(value)), [value])
  const wrong = text !== '' && localTimeOf(text) === null ? 'is written as 2026-11-26 14:30' : null
  const take = (written: string) => {
    setText(written)
    const local = written === '' ? '' : localTimeOf(written)
    if (local !== null) onInput(local)
  }
  return (
    <Field {...rest} {...(wrong === null ? {} : { wrong })}>
      {props => (
        <input
          {...props}
          type="text"
          class="num"
          value={text}
          placeholder="2026-11-26 14:30"
          autocomplete="off"
          onChange={event => take(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

const focused = new WeakSet<Element>()
function focusOnce(element: HTMLInputElement | null): void {
  if (!element || focused.has(element)) return
  focused.add(element)
  // The page stays at its top, wherever the field is.
  element.focus({ preventScroll: true })
}

/** An input for an integer. Empty means null. */
export const NumberField = ({
  value,
  onInput,
  min = 0,
  ...rest
}: Common & {
  value: number | null
  onInput: (value: number | null) => void
  min?: number
  placeholder?: string
  required?: boolean
}) => (
  <Field {...rest}>
    {props => (
      <input
        {...props}
        type="number"
        min={min}
        step="1"
        required={rest.required}
        placeholder={rest.placeholder}
        value={value ?? ''}
        onInput={event => onInput(event.currentTarget.value === '' ? null : event.currentTarget.valueAsNumber)}
      />
    )}
  </Field>
)

/** An input for an amount. The user types major units; the form keeps minor units. */
export const MoneyField = ({
  value,
  onInput,
  ...rest
}: Common & { value: number | null; onInput: (value: number | null) => void; placeholder?: string }) => (
  <Field {...rest}>
    {props => (
      <input
        {...props}
        type="number"
        min={0}
        step="0.01"
        placeholder={rest.placeholder ?? 'no ceiling'}
        value={value === null ? '' : value / 100}
        onInput={event =>
          onInput(event.currentTarget.value === '' ? null : Math.round(event.currentTarget.valueAsNumber * 100))
        }
      />
    )}
  </Field>
)

export const AreaField = ({
  value,
  onInput,
  mono,
  rows = 4,
  placeholder,
  ...rest
}: Common & {
  value: string
  onInput: (value: string) => void
  mono?: boolean
  rows?: number
  placeholder?: string
}) => (
  <Field {...rest}>
    {props => (
      <textarea
        {...props}
        rows={rows}
        class={mono ? 'mono' : ''}
        placeholder={placeholder}
        value={value}
        onInput={event => onInput(event.currentTarget.value)}
      />
    )}
  </Field>
)

interface Option {
  readonly value: string
  readonly text: string
}

export const SelectField = ({
  value,
  onInput,
  options,
  disabled = false,
  ...rest
}: Common & {
  value: string
  onInput: (value: string) => void
  options: readonly Option[]
  disabled?: boolean
}) => (
  <Field {...rest}>
    {props => (
      <select {...props} value={value} disabled={disabled} onChange={event => onInput(event.currentTarget.value)}>
        {options.map(option => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    )}
  </Field>
)

export const CheckField = ({
  checked,
  onInput,
  label,
  hint,
}: {
  checked: boolean
  onInput: (value: boolean) => void
  label: string
  hint?: ComponentChildren
}) => (
  <label class="check">
    <input type="checkbox" checked={checked} onChange={event => onInput(event.currentTarget.checked)} />
    <span>
      {label}
      {hint && <span class="muted small"> {hint}</span>}
    </span>
  </label>
)

/** Radio buttons, each with an explanation. */
export function Choices<T extends string>({
  legend,
  value,
  onInput,
  options,
}: {
  legend: string
  value: T
  onInput: (value: T) => void
  options: readonly { readonly value: T; readonly text: string; readonly hint: string }[]
}) {
  const name = useId()
  return (
    <fieldset>
      <legend>{legend}</legend>
      <div class="choices">
        {options.map(option => (
          <label class="choice" key={option.value}>
            <input type="radio" name={name} checked={option.value === value} onChange={() => onInput(option.value)} />
            <div>
              <strong>{option.text}</strong>
              <span>{option.hint}</span>
            </div>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

/** Checkboxes. Any number of them may be checked. */
export const Chips = <Value extends string>({
  legend,
  values,
  onInput,
  options,
  wrong,
}: {
  legend: string
  values: readonly Value[]
  onInput: (values: readonly Value[]) => void
  options: readonly (Option & { readonly value: Value })[]
  wrong?: string | null
}) => (
  <fieldset>
    <legend>{legend}</legend>
    <div class="chips">
      {options.map(option => (
        <label class="chip" key={option.value}>
          <input
            type="checkbox"
            checked={values.includes(option.value)}
            onChange={event =>
              onInput(
                event.currentTarget.checked
                  ? [...values, option.value]
                  : values.filter(value => value !== option.value),
              )
            }
          />
          {option.text}
        </label>
      ))}
    </div>
    {wrong && <span class="wrong small">{wrong}</span>}
  </fieldset>
)

/** A form that never reloads the page. Errors of fields outside `fields` are shown above its buttons. */
export function Form({
  children,
  onSubmit,
  submit,
  busy,
  problem,
  fields = [],
  more,
  danger,
  disabled,
}: {
  children?: ComponentChildren
  onSubmit: () => void
  submit: string
  busy?: boolean
  problem?: Problem | null
  fields?: readonly string[]
  more?: ComponentChildren
  danger?: boolean
  disabled?: boolean
}) {
  const send = (event: Event) => {
    event.preventDefault()
    if (!busy) onSubmit()
  }
  return (
    <form onSubmit={send} noValidate={false}>
      {children}
      {problem && <ProblemBox problem={problem} rest={messagesElsewhere(problem, fields)} />}
      <div class="actions">
        <Button type="submit" kind={danger ? 'danger' : 'main-one'} disabled={(busy ?? false) || (disabled ?? false)}>
          {busy ? 'One moment…' : submit}
        </Button>
        {more}
      </div>
    </form>
  )
}
