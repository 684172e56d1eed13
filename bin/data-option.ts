let folder: string | undefined

/** Notes the folder that `--data` names, for this run of the command. */
export const nameFolder = (named: string | undefined): void => {
  folder = named
}

/** The folder that `--data` names; undefined without that option. */
export const namedFolder = (): string | undefined => folder
