"""What people see: files, command line, report, explorer, features. Imported by nothing below."""
