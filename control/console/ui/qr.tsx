import { create } from 'qrcode'

/** Modules of white around a code, by which readers find it (ISO/IEC 18004, 4 at least). */
const QUIET = 4
const ROW_PX = 5

/** Draws a text as a QR code. It is black on white in both themes, because many readers know no other. */
export function Qr({ text, label }: { text: string; label: string }) {
  const { size, data } = create(text, { errorCorrectionLevel: 'M' }).modules
  const side = size + 2 * QUIET
  const dark = Array.from({ length: size * size }, (_, at) => at).filter(at => data[at])
  const path = dark.map(at => `M${(at % size) + QUIET} ${Math.floor(at / size) + QUIET}h1v1h-1z`).join('')
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${side} ${side}`}
      width={side * ROW_PX}
      height={side * ROW_PX}
      shape-rendering="crispEdges"
    >
      <path d={`M0 0h${side}v${side}H0z`} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}
