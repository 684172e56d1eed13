declare module '*.svg' {
  const href: string
  export default href
}
declare module '*.css' {}
declare module 'qrcode' {
  /** The squares of a QR code, row by row; 1 is dark. */
  interface Modules {
    readonly size: number
    readonly data: Uint8Array
  }
  export function create(
    text: string,
    options: { readonly errorCorrectionLevel: 'L' | 'M' | 'Q' | 'H' },
  ): { readonly modules: Modules }
}

declare module 'lucide/dist/esm/icons/*.mjs' {
  /** The shapes of an icon: names of SVG elements with their attributes. */
  const shapes: readonly (readonly [tag: string, attributes: Readonly<Record<string, string>>])[]
  export default shapes
}
