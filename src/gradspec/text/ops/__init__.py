"""Operations on Variables."""
