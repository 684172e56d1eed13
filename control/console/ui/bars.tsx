interface Bar {
  readonly name: string
  readonly value: number
  /** The value as a person reads it. */
  readonly text: string
}

/** Amounts side by side, each as long as its share of the largest. */
export function Bars({ label, rows }: { label: string; rows: readonly Bar[] }) {
  const most = rows.reduce((largest, { value }) => Math.max(largest, value), 0)
  return (
    <ul class="bars" aria-label={label}>
      {rows.map(({ name, value, text }) => (
        <li key={name}>
          <span class="name">{name}</span>
          <span class="bar" style={{ width: most === 0 ? '0' : `${(100 * value) / most}%` }} aria-hidden="true" />
          <span class="num small">{text}</span>
        </li>
      ))}
    </ul>
  )
}
