import type { Column, ColumnType } from '../table-types.ts'

/** A column that is never NULL. */
export const column = <Name extends string, Type extends ColumnType>(
  name: Name,
  type: Type,
  comment: string,
): Column<Name, Type, false> => ({ name, type, nullable: false, comment })

/** A column that may be NULL. */
export const optional = <Name extends string, Type extends ColumnType>(
  name: Name,
  type: Type,
  comment: string,
): Column<Name, Type, true> => ({ name, type, nullable: true, comment })

export const schemaVersion = column('schema_version', 'INTEGER', 'Version of this table’s schema')
