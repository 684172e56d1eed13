const text = (description: string) => ({ type: 'string', description })

/** The schema of every error of the JSON APIs. */
export const PROBLEM = {
  type: 'object',
  description: 'RFC 9457 problem document; `code` names the reason and has a page at `type`.',
  required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
  properties: {
    type: { ...text('Page of the reason.'), format: 'uri' },
    title: text('Text of the HTTP status.'),
    status: { type: 'integer', format: 'int32', minimum: 0, description: 'HTTP status.' },
    detail: text('What is wrong with this request.'),
    code: text('The reason, for programs.'),
    request_id: text('Id of the request, as in `X-Request-ID`. Quote it in questions.'),
    available_projects: {
      type: 'array',
      description: 'With `project_context_required`: the projects to choose from.',
      items: {
        type: 'object',
        required: ['id', 'name'],
        properties: { id: text('Id of the project.'), name: text('Name of the project.') },
      },
    },
    caused_by: text('The code of the state that caused this one, such as `organization_suspended`.'),
    reason: text('A closer reason, where there is one.'),
    remediation: text('What to do about it.'),
    expensive_filter: text('Reserved: no filter is refused as too expensive.'),
    changed_resources: {
      type: 'array',
      items: { type: 'string' },
      description: 'With `revision_mismatch`: the ids of what has changed since it was read.',
    },
    errors: {
      type: 'array',
      description: 'With `validation_failed`: each field that does not fit.',
      items: {
        type: 'object',
        required: ['pointer', 'message'],
        properties: {
          pointer: text('JSON pointer to the field (RFC 6901).'),
          message: text('What is wrong with it.'),
        },
      },
    },
  },
} as const
